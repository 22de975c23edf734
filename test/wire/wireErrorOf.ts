import { WireError } from "../../src/wire/errors.ts";

/** The WireError that an action throws; anything else fails the test. */
export function wireErrorOf(action: () => unknown): WireError {
  try {
    action();
  } catch (error) {
    if (error instanceof WireError) return error;
    throw error;
  }
  throw new Error("want a WireError, got none");
}
