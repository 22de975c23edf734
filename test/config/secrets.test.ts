import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { loadConfig, parseSentConfig } from "../../src/config/load.ts";
import type { LoadedConfig } from "../../src/config/load.ts";
import { formatProblem } from "../../src/config/problem.ts";
import { placementFault } from "../../src/hash/placementFault.ts";
import { faultOf } from "../../src/relabel/rules.ts";

const FIXTURES = new URL("../fixtures/config/", import.meta.url);
const CERT = readFileSync(new URL("client.crt", FIXTURES), "utf8");
const KEY = readFileSync(new URL("client.key", FIXTURES), "utf8");
const OTHER_KEY = readFileSync(new URL("other.key", FIXTURES), "utf8");

let folder = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "secrets-"));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

function write(name: string, content: string | Uint8Array): void {
  writeFileSync(join(folder, name), content);
}

/** Loads a file in the folder with one upstream that has the options. */
function load(options: string): LoadedConfig {
  write("config.yaml", `routes: [{name: r, upstreams: [{name: a, url: https://a/w, ${options}}]}]`);
  return loadConfig(join(folder, "config.yaml"), {
    legacyHash: "jump",
    checkRule: faultOf,
    checkPlacement: placementFault,
  });
}

function problemsOf(options: string): string[] {
  const { problems } = load(options);
  return problems.map((problem) => formatProblem(problem).replace(`${folder}/config.yaml:1:`, ""));
}

describe("secrets in files", () => {
  it("are read from the folder of the configuration, without white space at their ends", () => {
    mkdirSync(join(folder, "secrets"));
    write("secrets/user", "me\n");
    write("secrets/password", "  hunter2 \r\n");
    const { config, problems } = load(
      "basic_auth: {username_file: secrets/user, password_file: secrets/password}",
    );
    expect(problems).toEqual([]);
    expect(config?.routes[0]?.upstreams[0]?.auth).toEqual({
      kind: "basic",
      username: "me",
      password: "hunter2",
    });
  });

  it("are read through links, as Kubernetes mounts them, and from absolute paths", () => {
    mkdirSync(join(folder, "..data"));
    write("..data/token", "abc");
    symlinkSync("..data/token", join(folder, "token"));
    const { config } = load(`authorization: {credentials_file: ${join(folder, "token")}}`);
    expect(config?.routes[0]?.upstreams[0]?.auth).toEqual({
      kind: "authorization",
      type: "Bearer",
      credentials: "abc",
    });
  });

  it.each([
    { name: "a folder", file: "folder", reason: "it is not a regular file" },
    { name: "an empty file", file: "empty", reason: "it is empty" },
    { name: "a file that is too large", file: "large", reason: "it has 1048577 bytes; want at most 1048576" },
    { name: "a file that is no text", file: "binary", reason: "it is not UTF-8 text" },
    { name: "no file", file: "none", reason: "no such file" },
    { name: "a path through a file", file: "empty/none", reason: "no such file" },
  ])("cannot come from $name", ({ file, reason }) => {
    mkdirSync(join(folder, "folder"));
    write("empty", " \n");
    write("large", "x".repeat(1048577));
    write("binary", Uint8Array.of(0xff, 0xfe));
    const place = "routes[0].upstreams[0].basic_auth.password_file";
    const hint = "(relative paths start at the configuration's folder)";
    expect(problemsOf(`basic_auth: {username: u, password_file: ${file}}`)).toEqual([
      `101: ${place}: cannot use the file: ${reason} ${hint}`,
    ]);
  });

  it("that no header can carry are refused where their file is named", () => {
    write("token", "hunter\n2");
    expect(problemsOf("authorization: {credentials_file: token}")).toEqual([
      "94: routes[0].upstreams[0].authorization.credentials_file: want printable ASCII on one line; got other characters",
    ]);
  });
});

describe("certificates", () => {
  it("are taken from files and from the configuration itself", () => {
    write("client.crt", CERT);
    write("client.key", KEY);
    const { config, problems } = load(
      `tls_config: {ca: ${JSON.stringify(CERT)}, cert_file: client.crt, key_file: client.key}`,
    );
    expect(problems).toEqual([]);
    expect(config?.routes[0]?.upstreams[0]?.tls).toEqual({
      ca: CERT,
      cert: CERT.trim(),
      key: KEY.trim(),
      insecureSkipVerify: false,
    });
  });

  it("with the key of another are refused", () => {
    write("client.crt", CERT);
    write("client.key", OTHER_KEY);
    expect(problemsOf("tls_config: {cert_file: client.crt, key_file: client.key}")).toEqual([
      "106: routes[0].upstreams[0].tls_config.key_file: want the certificate's private key in PEM, without a passphrase; OpenSSL says key values mismatch",
    ]);
  });

  it("that are none are refused where their file is named", () => {
    write("ca.crt", "hunter2");
    write("client.key", "hunter2");
    write("client.crt", CERT);
    expect(problemsOf("tls_config: {ca_file: ca.crt, cert_file: client.crt, key_file: client.key}")).toEqual([
      "82: routes[0].upstreams[0].tls_config.ca_file: want certificates in PEM; OpenSSL says no start line",
      "123: routes[0].upstreams[0].tls_config.key_file: want the certificate's private key in PEM, without a passphrase; OpenSSL says unsupported",
    ]);
  });
});

describe("files that a text from elsewhere names", () => {
  const textOf = (options: string): string =>
    `{admin_token_file: ${folder}/there, routes: [{name: r, upstreams: [{name: a, url: https://a/w, ${options}}]}]}`;
  const sent = (options: string): LoadedConfig =>
    parseSentConfig(textOf(options), "to", {
      legacyHash: "jump",
      checkRule: faultOf,
      checkPlacement: placementFault,
    });

  it.each([
    { name: "a password", options: (file: string) => `basic_auth: {username: me, password_file: ${file}}` },
    { name: "a user name", options: (file: string) => `basic_auth: {username_file: ${file}}` },
    { name: "credentials", options: (file: string) => `authorization: {credentials_file: ${file}}` },
    { name: "an authority", options: (file: string) => `tls_config: {ca_file: ${file}}` },
    { name: "a pair", options: (file: string) => `tls_config: {cert_file: ${file}, key_file: ${file}}` },
  ])("are not looked at, so that nobody learns whether they are there: $name", ({ options }) => {
    write("there", "no certificate");
    const [there, missing] = [sent(options(`${folder}/there`)), sent(options(`${folder}/missing`))];
    expect(there).toEqual(missing);
    expect(there.problems).toEqual([]);
    expect(there.secretFiles).toEqual([]);
    expect(JSON.stringify(there.config)).not.toContain("no certificate");
  });

  it("do not keep what else is wrong from being told", () => {
    const { config, problems } = sent("authorization: {credentials_file: f, credentials: c, user: u}");
    expect(config).toBeNull();
    expect(problems.map(({ message }) => message)).toEqual([
      "want either credentials or credentials_file; got both",
      expect.stringMatching(/^unknown key/),
    ]);
  });
});
