/** When a route is done with its upstreams of past periods. */
import type { RouteOptions } from "./options.ts";

/**
 * When each upstream of a route retires: `retireAfterMs` past the end of the last period in which it is live. Until then it is
 * delivered to, since late and replayed items of its periods belong to it; items that come for it afterwards are to be dropped
 * as `period_retired`, by the clock of whoever delivers.
 *
 * @returns by index of the upstream: milliseconds since the epoch; null for one that is live in the newest period, and so
 *          never retires
 */
export function retirements({
  topology,
  upstreams,
  retireAfterMs,
}: Pick<RouteOptions, "topology" | "upstreams" | "retireAfterMs">): (number | null)[] {
  return upstreams.map(({ name }) => {
    const last = topology.findLastIndex(({ slots }) =>
      slots.some((slot) => slot.name === name && slot.removed !== true),
    );
    const endMs = topology[last + 1]?.fromMs ?? null;
    return endMs === null ? null : endMs + retireAfterMs;
  });
}
