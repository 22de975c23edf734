/**
 * What the admin listener offers: an endpoint is a method, a path and what answers.
 *
 * Answers have the shape of Prometheus' API: `{"status": "success", "data": ...}`, or `{"status": "error", "errorType": ...,
 * "error": ...}`. Some paths are for people and probes, and answer in plain text.
 */

export interface AdminRequest {
  /** Of the query string. */
  readonly query: URLSearchParams;
  /** UTF-8 text; empty for GET. */
  readonly body: string;
}

export type AdminAnswer =
  | { readonly kind: "data"; readonly data: unknown }
  /** What somebody asked for wrongly, or what cannot be now. */
  | {
      readonly kind: "error";
      readonly status: 400 | 409 | 422 | 503;
      readonly errorType: string;
      readonly error: string;
    }
  | {
      readonly kind: "text";
      readonly status: 200 | 400 | 409 | 503;
      readonly text: string;
      readonly contentType?: string;
    };

export interface Endpoint {
  readonly method: "GET" | "POST";
  readonly path: string;
  /** Whether it is open to everybody, as on the ingest port. */
  readonly isPublic?: boolean;
  readonly answer: (request: AdminRequest) => AdminAnswer | Promise<AdminAnswer>;
}
