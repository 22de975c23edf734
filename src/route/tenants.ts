/**
 * Whose request it is: the tenant that a request names in a header, as the routes want to know it.
 *
 * Decisions and batches are of one tenant. Requests that no route tells apart are all of one.
 */
import { isUtf8 } from "node:buffer";
import { WireError } from "../wire/errors.ts";
import type { TenantOptions } from "./options.ts";

/** The tenant of a request in one route. */
export interface Tenant {
  /** The header's value as Node gives it, a character a byte. */
  readonly header: string;
  /** The same as text, for a label. */
  readonly text: string;
}

export interface RequestTenants {
  /** Requests of equal context have equal tenants; those of UNKEPT_CONTEXT alone need not. */
  readonly context: number;
  /** By route; null where the route does not ask, or the request names none. */
  readonly byRoute: readonly (Tenant | null)[];
}

/** The context of all requests when no route asks for tenants. */
export const SHARED_CONTEXT = 0;
/** Decisions in this context are never kept. */
export const UNKEPT_CONTEXT = 2 ** 32 - 1;

// Tenants whose contexts are remembered, and what their names take; decisions of one that comes back later are made anew.
const MAX_REMEMBERED = 10_000;
const MAX_REMEMBERED_BYTES = 8 * 1024 * 1024;

/** The value of a header by its name in lower case. */
export type HeaderLookup = (name: string) => string | undefined;

/** Tells requests apart by the headers that routes ask for. */
export class Tenants {
  readonly #routes: readonly TenantOptions[];
  readonly #headers: readonly string[];
  readonly #shared: RequestTenants;
  /** By the values of all headers; the one that came last is the last. */
  readonly #known = new Map<string, RequestTenants>();
  #knownBytes = 0;
  #newest = SHARED_CONTEXT;

  /** @param routes what each route does with tenants */
  constructor(routes: readonly TenantOptions[]) {
    this.#routes = routes;
    this.#headers = [...new Set(routes.filter(asks).map(({ header }) => header))];
    this.#shared = { context: SHARED_CONTEXT, byRoute: routes.map(() => null) };
  }

  /** @throws {WireError} WIRE_TENANT when a tenant that is to be a label is not UTF-8 */
  of(headers: HeaderLookup): RequestTenants {
    if (this.#headers.length === 0) return this.#shared;
    const values = this.#headers.map((name) => headers(name) ?? "");
    const key = JSON.stringify(values);
    const known = this.#known.get(key) ?? this.#read(values);
    this.#forget(key);
    this.#known.set(key, known);
    this.#knownBytes += key.length;
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_REMEMBERED && this.#knownBytes <= MAX_REMEMBERED_BYTES) break;
      this.#forget(oldest);
    }
    return known;
  }

  #forget(key: string): void {
    if (this.#known.delete(key)) this.#knownBytes -= key.length;
  }

  #read(values: readonly string[]): RequestTenants {
    const byRoute = this.#routes.map((route) => {
      const header = asks(route) ? (values[this.#headers.indexOf(route.header)] ?? "") : "";
      return header === "" ? null : tenantOf(header, route);
    });
    if (this.#newest < UNKEPT_CONTEXT) this.#newest += 1;
    return { context: this.#newest, byRoute };
  }
}

function asks({ label, pass }: TenantOptions): boolean {
  return label !== null || pass;
}

function tenantOf(header: string, route: TenantOptions): Tenant {
  const bytes = Buffer.from(header, "latin1");
  if (route.label !== null && !isUtf8(bytes)) {
    const message = `the tenant in the header ${route.header} is not UTF-8; want text that a label can hold`;
    throw new WireError("WIRE_TENANT", 0, message);
  }
  return { header, text: bytes.toString("utf8") };
}
