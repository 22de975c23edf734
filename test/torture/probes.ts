/**
 * Small requests whose series all belong to upstreams that are well, beside a load that reaches all of them: what becomes of
 * these shows what an upstream in trouble costs those who have nothing for it.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Explainer } from "../../src/explain/explainer.ts";
import type { Config } from "../../src/config/config.ts";
import { compressWithHoles } from "../bench/corpus/holes.ts";
import { Mulberry } from "../bench/corpus/mulberry.ts";
import { corpusSeries, type CorpusSeries } from "../bench/corpus/targets.ts";
import { encodeRequest } from "../bench/corpus/writeRequest.ts";

export const SERIES_PER_PROBE = 20;
/** A prime, in no step with the load's requests: probes come at every moment between two of them. */
export const PROBES_PER_SECOND = 97;
const PROBES = 50;
/** Values of labels are others than those of the load. */
const SEED = 2;

/**
 * Makes them, and answers their folder, which is below `folder`.
 *
 * @param config  of the gateway, which has one route
 * @param avoided name of the upstream that gets nothing of them
 */
export function makeProbes(config: Config, avoided: string, folder: string): string {
  const corpus = join(folder, "probes");
  mkdirSync(corpus);
  const explainer = new Explainer(config);
  const all = corpusSeries(new Mulberry(SEED));
  for (let probe = 0; probe < PROBES; probe++) {
    const series: CorpusSeries[] = [];
    while (series.length < SERIES_PER_PROBE) {
      const { value } = all.next();
      if (!upstreamsOf(value, explainer).includes(avoided)) series.push(value);
    }
    const { plain } = encodeRequest(series, () => false);
    const name = `req-${String(probe).padStart(4, "0")}.sz`;
    writeFileSync(join(corpus, name), compressWithHoles(plain, []).block);
  }
  return corpus;
}

function upstreamsOf({ labels }: CorpusSeries, explainer: Explainer): readonly string[] {
  const explanation = explainer.explain(Object.entries(labels));
  const upstreams = "routes" in explanation ? explanation.routes[0]?.upstreams : undefined;
  if (upstreams === undefined) throw new Error("a series of the probes has no upstream");
  return upstreams;
}
