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

// Tenants whose contexts are remembered, and what they take; decisions of one that comes back later are made anew.
const MAX_REMEMBERED = 10_000;
const MAX_REMEMBERED_BYTES = 16 * 1024 * 1024;
const BYTES_A_ROUTE = 8;
/** A name is remembered as a key, as it came, and as text. */
const COPIES_OF_A_NAME = 4;

/** The values of a header, as often as it came, by its name in lower case. */
export type HeaderLookup = (name: string) => readonly string[] | undefined;

/** A header that routes ask for, and whether one of them puts it into a label. */
interface AskedHeader {
  readonly name: string;
  readonly isLabel: boolean;
}

/** Tells requests apart by the headers that routes ask for. */
export class Tenants {
  readonly #headers: readonly AskedHeader[];
  /** By route: which of the headers it asks for; -1 for none. */
  readonly #asked: readonly number[];
  readonly #maxLabelValueBytes: number;
  readonly #shared: RequestTenants;
  /** By the values of all headers; the one that came last is the last. */
  readonly #known = new Map<string, RequestTenants>();
  #knownBytes = 0;
  #newest = SHARED_CONTEXT;

  /**
   * @param routes             what each route does with tenants
   * @param maxLabelValueBytes of a tenant that is to be a label
   */
  constructor(routes: readonly TenantOptions[], maxLabelValueBytes: number) {
    const asking = routes.filter(asks);
    this.#headers = [...new Set(asking.map(({ header }) => header))].map((name) => ({
      name,
      isLabel: asking.some(({ header, label }) => header === name && label !== null),
    }));
    this.#asked = routes.map((route) =>
      asks(route) ? this.#headers.findIndex(({ name }) => name === route.header) : -1,
    );
    this.#maxLabelValueBytes = maxLabelValueBytes;
    this.#shared = { context: SHARED_CONTEXT, byRoute: routes.map(() => null) };
  }

  /** @throws {WireError} WIRE_TENANT when a tenant is named twice, or is to be a label and cannot */
  of(headers: HeaderLookup): RequestTenants {
    if (this.#headers.length === 0) return this.#shared;
    const values = this.#headers.map(({ name }) => onlyValue(name, headers(name) ?? []));
    const key = JSON.stringify(values);
    const known = this.#known.get(key) ?? this.#read(values);
    this.#forget(key);
    this.#known.set(key, known);
    this.#knownBytes += this.#bytesOf(key);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= MAX_REMEMBERED && this.#knownBytes <= MAX_REMEMBERED_BYTES) break;
      this.#forget(oldest);
    }
    return known;
  }

  #forget(key: string): void {
    if (this.#known.delete(key)) this.#knownBytes -= this.#bytesOf(key);
  }

  #bytesOf(key: string): number {
    return key.length * COPIES_OF_A_NAME + this.#asked.length * BYTES_A_ROUTE;
  }

  #read(values: readonly string[]): RequestTenants {
    const tenants = this.#headers.map((header, index) => this.#tenant(header, values[index] ?? ""));
    const byRoute = this.#asked.map((header) => tenants[header] ?? null);
    if (this.#newest < UNKEPT_CONTEXT) this.#newest += 1;
    return { context: this.#newest, byRoute };
  }

  #tenant({ name, isLabel }: AskedHeader, header: string): Tenant | null {
    if (header === "") return null;
    const bytes = Buffer.from(header, "latin1");
    if (isLabel && !isUtf8(bytes)) {
      throw notATenant(`the tenant in the header ${name} is not UTF-8; want text that a label can hold`);
    }
    if (isLabel && bytes.length > this.#maxLabelValueBytes) {
      const limit = `want at most ${this.#maxLabelValueBytes} (limits.max_label_value_bytes)`;
      throw notATenant(`the tenant in the header ${name} has ${bytes.length} bytes; ${limit}`);
    }
    return { header, text: bytes.toString("utf8") };
  }
}

/** The header in which a route finds its tenant; null for a route that does not ask. */
export function askedHeader(options: TenantOptions): string | null {
  return asks(options) ? options.header : null;
}

function asks({ label, pass }: TenantOptions): boolean {
  return label !== null || pass;
}

/** Two would be told apart from none by whoever put the second one in. */
function onlyValue(name: string, values: readonly string[]): string {
  if (values.length <= 1) return values[0] ?? "";
  throw notATenant(`the header ${name} came ${values.length} times; want one tenant`);
}

function notATenant(message: string): WireError {
  return new WireError("WIRE_TENANT", 0, message);
}
