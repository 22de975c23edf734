/** `tls_config` of an upstream, as Prometheus spells it; certificates are looked at here, not at the first connection. */
import { X509Certificate } from "node:crypto";
import { createSecureContext } from "node:tls";
import type { UpstreamTls } from "../deliver/options.ts";
import { flag, oneOf, text } from "./scalars.ts";
import type { Section } from "./section.ts";
import { givenAs, secret, type SecretFiles } from "./secrets.ts";

const VERSIONS = { TLS10: "TLSv1", TLS11: "TLSv1.1", TLS12: "TLSv1.2", TLS13: "TLSv1.3" } as const;
/** Node's default, below which no handshake begins unless min_version says so. */
const DEFAULT_MINIMUM = "TLS12";
const VERSION = oneOf("TLS10", "TLS11", "TLS12", "TLS13");

export function readTls(section: Section, files: SecretFiles): UpstreamTls {
  const ca = secret(section, "ca", files);
  const cert = secret(section, "cert", files);
  const key = secret(section, "key", files);
  const serverName = section.optional("server_name", text, undefined);
  const minimum = section.optional("min_version", VERSION, undefined);
  const maximum = section.optional("max_version", VERSION, undefined);
  checkCa(section, ca);
  checkPair(section, cert, key);
  if (minimum !== undefined && maximum !== undefined && minimum > maximum) {
    const message = `want a min_version of at most max_version; got ${minimum} and ${maximum}`;
    section.problems.error(section.placeOf("max_version"), message);
  }
  if (minimum === undefined && maximum !== undefined && maximum < DEFAULT_MINIMUM) {
    const message = `want min_version as well, which is ${DEFAULT_MINIMUM} by default; got ${maximum} alone`;
    section.problems.error(section.placeOf("max_version"), message);
  }
  return {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(serverName !== undefined && { serverName }),
    insecureSkipVerify: section.optional("insecure_skip_verify", flag, false),
    ...(minimum !== undefined && { minVersion: VERSIONS[minimum] }),
    ...(maximum !== undefined && { maxVersion: VERSIONS[maximum] }),
  };
}

function checkCa(section: Section, ca: string | undefined): void {
  if (ca === undefined) return;
  const reason = whyNot(() => new X509Certificate(ca));
  if (reason !== null) {
    section.problems.error(
      section.placeOf(givenAs(section, "ca")),
      `want certificates in PEM; OpenSSL says ${reason}`,
    );
  }
}

function checkPair(section: Section, cert: string | undefined, key: string | undefined): void {
  const hasCert = section.has("cert") || section.has("cert_file");
  const hasKey = section.has("key") || section.has("key_file");
  if (hasCert && !hasKey)
    section.problems.error(section.placeOf("key"), "missing; want the private key of the certificate");
  if (hasKey && !hasCert)
    section.problems.error(section.placeOf("cert"), "missing; want the certificate of the private key");
  if (cert === undefined || key === undefined) return;
  const badCert = whyNot(() => createSecureContext({ cert }));
  if (badCert !== null) {
    section.problems.error(
      section.placeOf(givenAs(section, "cert")),
      `want a certificate in PEM; OpenSSL says ${badCert}`,
    );
    return;
  }
  const badKey = whyNot(() => createSecureContext({ cert, key }));
  if (badKey !== null) {
    const want = "want the certificate's private key in PEM, without a passphrase";
    section.problems.error(section.placeOf(givenAs(section, "key")), `${want}; OpenSSL says ${badKey}`);
  }
}

/** OpenSSL's reason why something cannot be done, which never quotes its input; null when it can. */
function whyNot(act: () => unknown): string | null {
  try {
    act();
    return null;
  } catch (error) {
    const reason = error instanceof Error && "reason" in error ? error.reason : undefined;
    return typeof reason === "string" ? reason : "it is unusable";
  }
}
