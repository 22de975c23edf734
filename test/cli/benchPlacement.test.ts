import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";

const REPOSITORY = fileURLToPath(new URL("../../", import.meta.url));
/** Processes that time things run beside everything else. */
const RUN_WITHIN_MS = 240_000;
const METHODS = [
  "hashmod",
  "jump",
  "balanced, 10000 tasks",
  "rendezvous",
  "maglev, 65537 entries",
  "ring md5, 160 points",
  "ring fnv1a, 160 points",
  "multi_probe, 21 probes",
];
const BY_NUMBER = ["hashmod", "jump", "balanced, 10000 tasks"];
const EVENER_RING = "ring md5, 1000 points";

beforeAll(() => {
  if (!existsSync(join(REPOSITORY, "dist/cmd/main.js"))) throw new Error("dist/ is missing: npm run build");
});

/** What the command prints. @param path where it finds programs */
function bench(folder: string, keys: number, path = process.env["PATH"] ?? ""): string {
  const args = [
    join(folder, "dist/cmd/main.js"),
    "bench",
    "placement",
    "--keys",
    String(keys),
    "--turns",
    "1",
  ];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    encoding: "utf8",
    env: { ...process.env, PATH: path },
  });
  expect(stderr).toBe("");
  expect(status).toBe(0);
  return stdout;
}

/** The rows of the table under a heading: cells by the row's first cell and the column. */
function tableUnder(output: string, heading: string): Map<string, Map<string, string>> {
  const section = output.split("### ").find((text) => text.startsWith(heading)) ?? "";
  const [columns = [], , ...rows] = section
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .map((line) => line.slice(2, -2).split(" | "));
  return new Map(
    rows.map(([name = "", ...cells]) => [
      name,
      new Map(cells.map((cell, i) => [columns[i + 1] ?? "", cell])),
    ]),
  );
}

function column(table: Map<string, Map<string, string>>, name: string): Map<string, number> {
  return new Map([...table].map(([row, cells]) => [row, Number(cells.get(name))]));
}

describe("bench placement, with few keys", () => {
  let output = "";
  beforeAll(() => {
    output = bench(REPOSITORY, 200_000);
  }, RUN_WITHIN_MS);
  const hasCompiler = (): boolean => spawnSync("gcc", ["--version"], { stdio: "ignore" }).status === 0;

  it("times every algorithm and gives the answers that C gives, or says that there is no compiler", () => {
    const rows = [...tableUnder(output, "Lookups at 100 slots").keys()];
    const alone = [...METHODS, EVENER_RING];
    expect(rows).toEqual(hasCompiler() ? [...alone, "ring md5, 160 points; C as libketama"] : alone);
    // With other answers it ends with an error.
    expect(output).toContain(
      hasCompiler()
        ? "Every algorithm gave the same answers in C."
        : "not compared with C: gcc is not installed",
    );
  });

  it("says that one turn says little, and gives its ratios as they are, without a spread", () => {
    expect(output).toContain("(--turns 1), which says little");
    for (const cells of tableUnder(output, "npm packages at 100 slots").values())
      expect(cells.get("package / ours")).toMatch(/^[\d.]+$/);
  });

  it("measures the tables of an algorithm, and nothing that they were made of", () => {
    const kibibytes = column(tableUnder(output, "Lookups at 100 slots"), "KiB");
    // 65537 slot numbers of two bytes; 16000 points and owners and 16384 sections, of four bytes each.
    expect(kibibytes.get("maglev, 65537 entries")).toBe(Math.round((65_537 * 2 + 2000) / 1024));
    expect(kibibytes.get("ring md5, 160 points")).toBe(Math.round((16_001 * 8 + 16_385 * 4 + 2000) / 1024));
    expect(kibibytes.get("jump")).toBe(1.95);
  });

  it("finds that the npm packages place keys as the algorithm of the same name here does", () => {
    const table = tableUnder(output, "npm packages at 100 slots");
    const answers = [...table].map(([name, cells]) => [name, cells.get("same here"), cells.get("answers")]);
    expect(answers).toEqual([
      ["jump-gouache 2.1.1, jump", "jump", "the same"],
      ["@subspace/jump-consistent-hash 1.1.1, jumpConsistentHash", "jump", "the same"],
      ["hashring 3.2.0, find of a position", "ring md5, 160 points", "the same"],
      ["hashring 3.2.0, get of a text", "ring md5, 160 points", "of other hashes"],
    ]);
  });

  it("finds 100 slots as evenly filled as each algorithm promises", () => {
    const most = column(tableUnder(output, "Shares of 100 slots"), "max/avg");
    expect([...most.keys()]).toEqual([...METHODS, EVENER_RING]);
    // Of 200,000 keys at random places the fullest of 100 slots has some 1.06 times its share.
    for (const name of ["hashmod", "jump", "rendezvous", "maglev, 65537 entries"])
      expect(most.get(name), name).toBeLessThan(1.08);
    expect(most.get("balanced, 10000 tasks")).toBe(1);
    expect(most.get("multi_probe, 21 probes")).toBeLessThan(1.15);
    expect(most.get(EVENER_RING)).toBeLessThan(1.15);
    expect(most.get("ring fnv1a, 160 points")).toBeGreaterThan(1.6);
  });

  it("finds 128 tasks evenly spread by balanced, and not by hashes", () => {
    const table = tableUnder(output, "max/avg of 128 tasks");
    for (const slots of ["3 slots", "5 slots", "10 slots"]) {
      expect(column(table, slots).get("balanced"), slots).toBeLessThan(1.05);
      expect(column(table, slots).get("rendezvous"), slots).toBeGreaterThan(1.1);
    }
  });

  /** Shares of a cell "moved / must move", in %. */
  const sharesOf = (cell = ""): { moved: number; must: number } => {
    const [moved = NaN, must = NaN] = cell.split(" / ").map(Number);
    return { moved, must };
  };

  it("moves what must move when a slot is added, but for hashmod, and a little more under maglev", () => {
    const table = tableUnder(output, "A slot is added at the end");
    expect([...table.keys()]).toEqual(METHODS);
    for (const [name, cells] of table) {
      for (const [change, cell] of cells) {
        const { moved, must } = sharesOf(cell);
        const what = `${name}, ${change}`;
        expect(must, what).toBeGreaterThan(0.5);
        if (name === "hashmod") expect(moved, what).toBeGreaterThan(70);
        else if (name.startsWith("maglev")) expect(moved, what).toBeLessThan(2 * must);
        else expect(moved, what).toBe(must);
      }
    }
  });

  it.each([10, 100])(
    "moves what must move when one of %d slots leaves a tombstone, whichever it is",
    (count) => {
      const table = tableUnder(output, `One of ${count} slots goes`);
      expect([...table.keys()]).toEqual(METHODS);
      for (const [name, cells] of table) {
        for (const position of ["first", "middle", "last"]) {
          const { moved, must } = sharesOf(cells.get(`${position}, tombstone`));
          expect(must, `${name}, ${position}`).toBeGreaterThan(0.5);
          expect(moved, `${name}, ${position}`).toBe(must);
        }
      }
    },
  );

  it.each([10, 100])(
    "renumbers, when the first of %d slots goes without one, what goes by number",
    (count) => {
      for (const [name, cells] of tableUnder(output, `One of ${count} slots goes`)) {
        const { moved, must } = sharesOf(cells.get("first (vmagent-0)"));
        if (BY_NUMBER.includes(name)) expect(moved, name).toBeGreaterThan(89);
        else expect(moved, name).toBeLessThan(2 * must);
      }
    },
  );
});

describe("bench placement of the installed product, on a machine without a compiler", () => {
  it(
    "measures ours and says what it is not compared with",
    () => {
      const folder = mkdtempSync(join(tmpdir(), "bench-placement-"));
      try {
        installWithoutDevelopmentPackages(folder);
        const output = bench(folder, 1000, folder);
        expect(output).toContain("not compared with C: gcc is not installed");
        for (const name of ["jump-gouache", "@subspace/jump-consistent-hash", "hashring"])
          expect(output).toContain(`Not compared with ${name}: it is not installed.`);
        expect([...tableUnder(output, "Lookups at 100 slots").keys()]).toEqual([...METHODS, EVENER_RING]);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
    RUN_WITHIN_MS,
  );
});

/** Puts the built package and links to the packages that it depends on into a folder. */
function installWithoutDevelopmentPackages(folder: string): void {
  const manifest = readFileSync(join(REPOSITORY, "package.json"), "utf8");
  const { dependencies } = JSON.parse(manifest) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  cpSync(join(REPOSITORY, "dist"), join(folder, "dist"), { recursive: true });
  cpSync(join(REPOSITORY, "package.json"), join(folder, "package.json"));
  for (const name of Object.keys(dependencies)) {
    const link = join(folder, "node_modules", name);
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync(join(REPOSITORY, "node_modules", name), link);
  }
}
