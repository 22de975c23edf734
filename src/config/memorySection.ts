/** `memory`: what the gateway may keep. */
import type { Config } from "./config.ts";
import { integer } from "./scalars.ts";
import type { Section } from "./section.ts";
import { GIB, MIB, size } from "./units.ts";

const MAX_TABLE_SERIES = { min: 1, max: 50_000_000, because: "more would not fit into the engine's memory" };
const MAX_TABLE_BYTES = {
  min: MIB,
  max: GIB,
  because: "the rest of what the engine can address is for requests",
};

const IN_FLIGHT_BYTES = { min: MIB, max: 1024 * GIB, because: "no machine has more" };

export function readMemory(memory: Section): Config["memory"] {
  const inFlightBytes = memory.optional("in_flight_bytes", size(IN_FLIGHT_BYTES), 256 * MIB);
  const decisionTable = {
    maxSeries: memory.optional("decision_table_series", integer(MAX_TABLE_SERIES), 1_000_000),
    maxBytes: memory.optional("decision_table_bytes", size(MAX_TABLE_BYTES), 256 * MIB),
  };
  return { inFlightBytes, decisionTable };
}
