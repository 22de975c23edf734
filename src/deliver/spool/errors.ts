/** Why the spool could not be opened, or read. What goes wrong while it is written to is the end of an append. */
export type SpoolErrorCode =
  | "SPOOL_IN_USE" // another process that is alive has the folder
  | "SPOOL_UNUSABLE" // the folder cannot be made, listed, read or written
  | "SPOOL_UNREADABLE"; // a segment could not be read this time; it is tried again by the next call

export class SpoolError extends Error {
  readonly code: SpoolErrorCode;

  constructor(code: SpoolErrorCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "SpoolError";
    this.code = code;
  }
}
