/** What the HTTP listener needs to know. Made by config/, where the defaults live. */

export interface ListenAddress {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
}

export interface BodyLimits {
  readonly maxBodyBytes: number;
  /** A request whose body is not complete this long after its headers has its connection closed. */
  readonly bodyTimeoutMs: number;
}

export interface ConnectionOptions {
  /**
   * A connection of this age, more or less, is closed between two requests: whoever balances connections gives the sender
   * another, which may go elsewhere. 0: never.
   */
  readonly maxConnectionAgeMs: number;
}
