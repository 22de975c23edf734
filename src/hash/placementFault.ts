/** Whether slots and an algorithm go together, for readers of configurations, who know where each of them stands. */
import { PlacementError } from "./errors.ts";
import { buildPlacement, type PlacementMethod } from "./placement.ts";
import type { NamedSlot } from "./slots.ts";

/** Says what is wrong, null when nothing is. */
export type PlacementCheck = (
  method: PlacementMethod,
  slots: readonly NamedSlot[],
  replicas: number,
) => PlacementError | null;

/** Finds out by building it. */
export const placementFault: PlacementCheck = (method, slots, replicas) => {
  try {
    buildPlacement(method, slots, replicas);
    return null;
  } catch (error) {
    if (error instanceof PlacementError) return error;
    throw error;
  }
};
