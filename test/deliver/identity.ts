/** Certificates for servers and clients of tests, by openssl. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** A certificate that vouches for itself, so it is its own ca, and its key, both in PEM. */
export interface Identity {
  readonly cert: string;
  readonly key: string;
}

/**
 * @param folder         where its files are made, `<name>.crt` and `<name>.key`
 * @param subjectAltName for whom it is, e.g. `IP:127.0.0.1`
 */
export function makeIdentity(folder: string, name: string, subjectAltName: string): Identity {
  const key = join(folder, `${name}.key`);
  const cert = join(folder, `${name}.crt`);
  const request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const subject = ["-days", "2", "-subj", `/CN=${name}`, "-addext", `subjectAltName=${subjectAltName}`];
  execFileSync("openssl", [...request, ...subject, "-keyout", key, "-out", cert], { stdio: "pipe" });
  return { cert: readFileSync(cert, "utf8"), key: readFileSync(key, "utf8") };
}
