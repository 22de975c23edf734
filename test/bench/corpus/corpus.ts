/**
 * The requests that the load driver sends: 200 bodies of 2,000 series, 400,000 in all, one sample each.
 *
 * There is a corpus for every share of new series. In all of them the same series come again each time the bodies are sent,
 * but for that share, whose `instance` the driver fills with other digits each time: no two requests share one of those.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { compressWithHoles } from "./holes.ts";
import { Mulberry } from "./mulberry.ts";
import { corpusSeries } from "./targets.ts";
import { encodeRequest } from "./writeRequest.ts";

export const REQUESTS = 200;
export const SERIES_PER_REQUEST = 2_000;
const SEED = 1;
/** Written last: where it is, the corpus is whole. */
const MANIFEST = "manifest.json";

/** Shares of new series, in percent. */
export const NEW_SHARES = [0, 1, 10, 100] as const;
export type NewShare = (typeof NEW_SHARES)[number];

export interface Manifest {
  readonly series: number;
  readonly plainBytesPerSeries: number;
  readonly compressedBytesPerSeries: number;
}

/** Makes the corpus of a share below `folder`, unless it is there already, and answers its own folder. */
export function ensureCorpus(folder: string, share: NewShare): string {
  const corpus = join(folder, `corpus-new-${share}`);
  if (existsSync(join(corpus, MANIFEST))) return corpus;
  process.stderr.write(`making ${corpus}\n`);
  rmSync(corpus, { recursive: true, force: true });
  mkdirSync(corpus, { recursive: true });
  const all = corpusSeries(new Mulberry(SEED));
  const isNew = (index: number): boolean => share > 0 && index % (100 / share) === 0;
  let plainBytes = 0;
  let compressedBytes = 0;
  for (let request = 0; request < REQUESTS; request++) {
    const series = Array.from({ length: SERIES_PER_REQUEST }, () => all.next().value);
    const { plain, holes } = encodeRequest(series, isNew);
    const compressed = compressWithHoles(plain, holes);
    const file = join(corpus, `req-${String(request).padStart(4, "0")}`);
    writeFileSync(`${file}.sz`, compressed.block);
    if (share > 0) writeFileSync(`${file}.holes`, Uint32Array.from(compressed.holes));
    plainBytes += plain.length;
    compressedBytes += compressed.block.length;
  }
  const series = REQUESTS * SERIES_PER_REQUEST;
  const manifest: Manifest = {
    series,
    plainBytesPerSeries: plainBytes / series,
    compressedBytesPerSeries: compressedBytes / series,
  };
  writeFileSync(join(corpus, MANIFEST), `${JSON.stringify(manifest)}\n`);
  return corpus;
}

/** The bodies of a corpus, as the driver sends them with its holes not filled. */
export function readBodies(corpus: string): Uint8Array[] {
  return Array.from({ length: REQUESTS }, (_, number) =>
    readFileSync(join(corpus, `req-${String(number).padStart(4, "0")}.sz`)),
  );
}

export function readManifest(corpus: string): Manifest {
  return JSON.parse(readFileSync(join(corpus, MANIFEST), "utf8")) as Manifest;
}
