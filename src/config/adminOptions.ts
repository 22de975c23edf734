/** `admin_listen` and `admin_token_file`: where operators are served, and how they are told from others. */
import { isIP } from "node:net";
import type { AdminOptions } from "../admin/options.ts";
import type { ListenAddress } from "../receive/options.ts";
import { listenAddress } from "./listenAddress.ts";
import { fileSecret, type SecretFiles } from "./secrets.ts";
import type { Reader, Section } from "./section.ts";

const DEFAULT: ListenAddress = { host: "127.0.0.1", port: 8081 };

export function readAdmin(top: Section, files: SecretFiles): AdminOptions {
  const { listen } = top.optional("admin_listen", addressOrOff, { listen: DEFAULT });
  const token = fileSecret(top, "admin_token_file", files) ?? null;
  if (listen !== null && token === null && !top.has("admin_token_file") && !isLoopback(listen)) {
    const message =
      "whoever reaches this address may change the configuration that runs, and sees series: " +
      "want an admin_token_file, or an address of this machine alone such as 127.0.0.1:8081";
    top.problems.warning(top.placeOf("admin_listen"), message);
  }
  return { listen, token };
}

const addressOrOff: Reader<{ readonly listen: ListenAddress | null }> = (node, problems) => {
  if (node.kind === "text" && node.text === "off") return { listen: null };
  const listen = listenAddress(node, problems);
  return listen === null ? null : { listen };
};

function isLoopback({ host }: ListenAddress): boolean {
  if (host === "localhost" || host === "::1") return true;
  return isIP(host) === 4 && host.startsWith("127.");
}
