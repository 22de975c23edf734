/** Reads moments in time. */
import { parseMoment, WANT_MOMENT } from "../moment.ts";
import { wrong } from "./scalars.ts";
import type { Reader } from "./section.ts";

/** A moment, quoted or not. @returns a reader of milliseconds since the epoch */
export const moment: Reader<number> = (node, problems) => {
  const milliseconds = node.kind === "text" ? parseMoment(node.text) : null;
  if (milliseconds === null) return wrong(node, problems, WANT_MOMENT);
  // Nobody has samples from before, and parts of the gateway take all such timestamps for the same.
  return milliseconds < 0 ? wrong(node, problems, "a time from 1970 on") : milliseconds;
};
