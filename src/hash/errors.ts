/** Why no placement can be built over the slots that a configuration names. */
export type PlacementErrorCode =
  | "PLACEMENT_NO_SLOTS" // the list is empty
  | "PLACEMENT_DUPLICATE_NAME" // two slots of one name
  | "PLACEMENT_WEIGHT" // a weight that is no finite number above 0
  | "PLACEMENT_WEIGHT_UNUSED" // a weight where the algorithm knows none
  | "PLACEMENT_ALL_REMOVED" // every slot is a tombstone
  | "PLACEMENT_TOO_FEW_LIVE" // more replicas than live slots
  | "PLACEMENT_POINTS" // a slot without points on its ring, or a ring of too many
  | "PLACEMENT_TABLE" // a Maglev table that is no prime, too small for the slots, or too large
  | "PLACEMENT_PROBES" // a number of probes that is no count, or too large
  | "PLACEMENT_NO_TASKS" // balanced, and nobody says how many tasks there are
  | "PLACEMENT_TASKS"; // balanced, with more tasks than it makes a table for

/** Thrown while a placement is built, never by a lookup. Its message says what to write instead. */
export class PlacementError extends Error {
  readonly code: PlacementErrorCode;
  /** Which slot of the list it is about; null if it is about the algorithm or the list as a whole. */
  readonly slot: number | null;

  constructor(code: PlacementErrorCode, slot: number | null, message: string) {
    super(message);
    this.name = "PlacementError";
    this.code = code;
    this.slot = slot;
  }
}
