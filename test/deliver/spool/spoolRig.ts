/** A spool as tests use it: parcels with numbers, and what was told of them. */
import { SpoolStore } from "../../../src/deliver/spool/spoolStore.ts";
import type { SpoolEvents } from "../../../src/deliver/spool/events.ts";
import type { SpoolFiles } from "../../../src/deliver/spool/files.ts";
import type { SpoolOptions } from "../../../src/deliver/spool/options.ts";
import type { AppendEnd } from "../../../src/deliver/spool/append.ts";
import type { SpooledParcel } from "../../../src/deliver/spool/readBatch.ts";
import type { SpoolStream } from "../../../src/deliver/spool/spoolStream.ts";
import type { SpoolTools } from "../../../src/deliver/spool/tools.ts";
import type { UpstreamSpool } from "../../../src/deliver/spool/upstreamSpool.ts";
import { randomFrom } from "./forgetfulFiles.ts";
import { withHeadroom } from "../../../src/wire/parcel.ts";
import type { ItemCounts, Parcel } from "../../../src/wire/parcel.ts";

export const MIB = 1024 * 1024;

export const OPTIONS: SpoolOptions = {
  path: "/spool",
  maxBytes: 1024 * MIB,
  maxBytesPerUpstream: 1024 * MIB,
  whenFull: "refuse",
  orphans: "keep",
};

export const ALL = { maxItems: Infinity, maxPlainBytes: Infinity };
export const LANE_0 = { number: 0, tenant: null };

const random = randomFrom(20260101);

/** What a spool said. */
export class Told implements SpoolEvents {
  readonly drops: { reason: string; replica: number; records: number; samples: number }[] = [];
  /** Bytes. */
  readonly damage: number[] = [];

  dropped(reason: string, replica: number, { samples, histograms }: ItemCounts): void {
    this.drops.push({ reason, replica, records: histograms, samples }); // see numbered()
  }

  damaged(bytes: number): void {
    this.damage.push(bytes);
  }

  samples(reason: string): number {
    return this.drops.filter((drop) => drop.reason === reason).reduce((sum, { samples }) => sum + samples, 0);
  }
}

/** Log lines, by level. */
export class Lines {
  readonly error: string[] = [];
  readonly warn: string[] = [];
  readonly info: string[] = [];
  readonly log = {
    error: (line: string) => void this.error.push(line),
    warn: (line: string) => void this.warn.push(line),
    info: (line: string) => void this.info.push(line),
  } as unknown as SpoolTools["log"];
}

/** A spool with one upstream. */
export class SpoolRig {
  readonly store: SpoolStore;
  readonly spool: UpstreamSpool;
  readonly told: Told;
  readonly lines: Lines;

  private constructor(store: SpoolStore, lines: Lines) {
    this.store = store;
    this.told = new Told();
    this.lines = lines;
    this.spool = store.upstream("aggregation", "vmagent-0", this.told);
  }

  static async open(
    files: SpoolFiles,
    options: Partial<SpoolOptions> = {},
    clock = () => 0,
  ): Promise<SpoolRig> {
    const lines = new Lines();
    const tools = { files, now: clock, random, log: lines.log };
    return new SpoolRig(await SpoolStore.open({ ...OPTIONS, ...options }, tools), lines);
  }

  get lane(): SpoolStream {
    return this.spool.stream(LANE_0);
  }
}

/** How much a spool has found at its start. */
export function foundBy({ foundAtStart }: UpstreamSpool): { records: number; samples: number } {
  const sum = { records: 0, samples: 0 };
  for (const { records, items } of foundAtStart.replicas) {
    sum.records += records;
    sum.samples += items.samples;
  }
  return sum;
}

/** A parcel with a number, which is also its count of samples; it has one histogram. */
export function numbered(number: number, bytes = 40, replica = 0): Parcel {
  const elements = withHeadroom(Buffer.from(`#${number};`.padEnd(bytes, "x")));
  const items = { samples: number, histograms: 1, exemplars: 0 };
  return { elements, plainBytes: 2 * bytes, series: 3, items, replica, newestTimestampMs: 1000 + number };
}

export function numberOf({ parcel }: SpooledParcel): number {
  return Number(/^#(\d+);/.exec(Buffer.from(parcel.elements).toString("latin1"))?.[1]);
}

/** @param onEnd called when the append ends, before the caller goes on */
export function append(
  stream: SpoolStream,
  parcels: readonly Parcel[],
  held = false,
  onEnd: (end: AppendEnd) => void = () => undefined,
): Promise<AppendEnd> {
  return new Promise((resolve) => {
    stream.append(parcels, held, (end) => {
      onEnd(end);
      resolve(end);
    });
  });
}

/** Reads all that is unread. */
export async function readAll(stream: SpoolStream, limits = ALL): Promise<SpooledParcel[]> {
  const all: SpooledParcel[] = [];
  while (stream.hasUnread) all.push(...(await stream.next(limits)));
  return all;
}

export async function numbersIn(stream: SpoolStream, limits = ALL): Promise<number[]> {
  return (await readAll(stream, limits)).map(numberOf);
}
