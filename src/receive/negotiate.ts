/** Which requests are remote write 1.0 in snappy: by their headers, before the body is read. */

/** Media types by RFC 9110: names and parameter names in any case, blanks around parameters, values may be quoted. */
interface MediaType {
  readonly type: string;
  readonly parameters: ReadonlyMap<string, string>;
}

const PROTOBUF = "application/x-protobuf";
const VERSION_1 = "prometheus.WriteRequest";
const PARAMETER = /;\s*([^\s=;]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*))\s*/gy;

/**
 * Answers what is wrong with the headers of a write request, for a 415, or null.
 *
 * No Content-Encoding means snappy and no Content-Type means 1.0, as old senders leave them out. A vmagent that sends
 * zstd repacks its block as snappy when it sees the 415, and stays with snappy.
 */
export function unsupportedReason(headers: {
  readonly [name: string]: string | string[] | undefined;
}): string | null {
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && String(encoding).trim().toLowerCase() !== "snappy") {
    return `Content-Encoding ${printable(String(encoding))} is not supported, want snappy`;
  }
  const header = headers["content-type"];
  if (header === undefined) return null;
  const media = parseMediaType(String(header));
  if (media?.type !== PROTOBUF) {
    return `Content-Type ${printable(String(header))} is not supported, want ${PROTOBUF}`;
  }
  const message = media.parameters.get("proto") ?? VERSION_1;
  if (message !== VERSION_1) {
    return `message ${printable(message)} is not supported, want ${VERSION_1} (remote write 1.0)`;
  }
  return null;
}

function parseMediaType(header: string): MediaType | null {
  const semicolon = header.indexOf(";");
  const type = (semicolon < 0 ? header : header.slice(0, semicolon)).trim().toLowerCase();
  const parameters = new Map<string, string>();
  let at = semicolon < 0 ? header.length : semicolon;
  while (at < header.length) {
    // A lone semicolon at the end is harmless.
    if (header.slice(at).trim() === ";") break;
    PARAMETER.lastIndex = at;
    const match = PARAMETER.exec(header);
    if (match === null) return null;
    const [, name = "", quoted, token] = match;
    parameters.set(name.toLowerCase(), quoted === undefined ? (token ?? "") : quoted.replace(/\\(.)/g, "$1"));
    at = PARAMETER.lastIndex;
  }
  return { type, parameters };
}

/** What a stranger sent, short and without control characters, for an error message. */
function printable(text: string): string {
  return JSON.stringify(text.slice(0, 100));
}
