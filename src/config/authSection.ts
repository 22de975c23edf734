/** `basic_auth` and `authorization` of an upstream, as Prometheus spells them. */
import type { UpstreamAuth } from "../deliver/options.ts";
import { isHeaderValue, isToken } from "./httpHeaders.ts";
import { text, wrong } from "./scalars.ts";
import { sectionOf } from "./section.ts";
import type { Reader, Section } from "./section.ts";
import { givenAs, secret, type SecretFiles } from "./secrets.ts";

const NONE: UpstreamAuth = { kind: "none" };

export function readAuth(upstream: Section, files: SecretFiles): UpstreamAuth {
  const basic = upstream.optional(
    "basic_auth",
    sectionOf((section) => readBasic(section, files)),
    NONE,
  );
  const authorization = upstream.optional(
    "authorization",
    sectionOf((section) => readAuthorization(section, files)),
    NONE,
  );
  if (upstream.has("basic_auth") && upstream.has("authorization")) {
    upstream.problems.error(
      upstream.placeOf("authorization"),
      "want either basic_auth or authorization; got both",
    );
  }
  return basic.kind === "none" ? authorization : basic;
}

/** A missing password is an empty one: some receivers take a token as the user name alone. */
function readBasic(basic: Section, files: SecretFiles): UpstreamAuth | null {
  const username = secret(basic, "username", files);
  const password = secret(basic, "password", files) ?? "";
  const place = basic.placeOf(givenAs(basic, "username"));
  if (!basic.has("username") && !basic.has("username_file")) {
    basic.problems.error(basic.placeOf("username"), "missing; want a user name");
  } else if (username === "") {
    basic.problems.error(place, "want a user name; got nothing");
  } else if (username?.includes(":") === true) {
    basic.problems.error(place, "want a user name without a colon, which ends it in basic authentication");
  }
  return username === undefined ? null : { kind: "basic", username, password };
}

function readAuthorization(authorization: Section, files: SecretFiles): UpstreamAuth | null {
  const type = authorization.optional("type", scheme, "Bearer");
  const credentials = secret(authorization, "credentials", files);
  const place = authorization.placeOf(givenAs(authorization, "credentials"));
  if (!authorization.has("credentials") && !authorization.has("credentials_file")) {
    authorization.problems.error(
      authorization.placeOf("credentials"),
      "missing; want credentials or credentials_file",
    );
  } else if (credentials === "") {
    authorization.problems.error(place, "want credentials; got nothing");
  } else if (credentials !== undefined && !isHeaderValue(credentials)) {
    authorization.problems.error(place, "want printable ASCII on one line; got other characters");
  }
  return credentials === undefined ? null : { kind: "authorization", type, credentials };
}

const scheme: Reader<string> = (node, problems) => {
  const type = text(node, problems);
  if (type === null) return null;
  if (type.toLowerCase() === "basic") return wrong(node, problems, "basic_auth for basic authentication");
  // What is no token may be credentials in the wrong place.
  return isToken(type) ? type : wrong(node, problems, "an authorization scheme as Bearer", "something else");
};
