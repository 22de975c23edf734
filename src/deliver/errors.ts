/** Why a sender could not be made. What goes wrong on the way to an upstream is an outcome, not an error. */
export type DeliveryErrorCode = "DELIVERY_TLS"; // certificates, key or versions of tls_config do not make a TLS client

export class DeliveryError extends Error {
  readonly code: DeliveryErrorCode;

  constructor(code: DeliveryErrorCode, message: string, cause: unknown) {
    super(message, { cause });
    this.name = "DeliveryError";
    this.code = code;
  }
}
