import js from "@eslint/js";
import tseslint from "typescript-eslint";

/**
 * Which folders of src/ a folder may import from. The folders are the journey of a sample and imports go one way;
 * "types" means type imports only.
 */
const IMPORTS = {
  hash: { may: [], why: "pure: keys and placement know no user, clock, I/O or metric" },
  wire: { may: [], why: "pure: bytes in, bytes out" },
  relabel: { may: ["hash"], why: "pure: rules know no user, clock, I/O or metric" },
  telemetry: { may: [], why: "stages report to it through its callers" },
  engine: { may: [], why: "the engine moves bytes and knows no label semantics" },
  route: {
    may: ["hash", "wire", "relabel", "engine"],
    why: "routing is a pure function of configuration and series",
  },
  plan: {
    may: ["hash", "wire", "relabel", "route"],
    why: "a plan is a pure function of two configurations and the series: whoever has these can make one",
  },
  explain: {
    may: ["hash", "wire", "relabel", "route"],
    types: ["config"],
    why: "an explanation is told by the code that routes real traffic",
  },
  deliver: { may: ["wire"], why: "a sender knows parcels, not where they come from" },
  receive: { may: ["wire"], why: "receive meets the other stages by small interfaces" },
  config: {
    may: [],
    types: ["hash", "relabel", "route", "deliver", "receive", "admin"],
    why: "config produces the stages' options",
  },
  reload: { may: ["config", "plan"], why: "reads a configuration anew and hands it on" },
  admin: { may: [], types: ["receive", "plan"], why: "admin meets the other stages by small interfaces" },
  lint: {
    may: ["hash", "wire", "relabel", "route"],
    types: ["config"],
    why: "verdicts follow from files that are read, by the code that routes real traffic",
  },
};
const FOLDERS = [...Object.keys(IMPORTS), "cli"];
const PURE = new Set(["hash", "wire", "relabel", "route", "engine", "plan", "lint", "explain"]);

/** Packages that a pure folder may use; what tells the time, does I/O or keeps state stays out. */
const PURE_PACKAGES = ["node:buffer", "re2js", "snappyjs"];
/** And what one of them may use besides: MD5 is a pure function, the rest of its package is not. */
const FURTHER_PACKAGES = { hash: ["node:crypto"], relabel: ["node:crypto"] };

/** Reads the compiled engine, once, when the first one is made. */
const ENGINE_PROGRAM = "src/engine/program.ts";

const layering = Object.entries(IMPORTS).map(([folder, { may, types = [], why }]) => {
  const forbidden = FOLDERS.filter((other) => other !== folder && !may.includes(other));
  const message = `src/${folder} does not import this (${why}): see IMPORTS in eslint.config.js.`;
  const patterns = [
    // Wherever the folder's name stands in the path, so that no spelling of it gets through.
    { regex: `/(${forbidden.filter((other) => !types.includes(other)).join("|")})/`, message },
    {
      regex: "(^|/)(gateway|setup|upstreams|writes)\\.ts$",
      message: "Only src/cli and cmd import the assembly.",
    },
  ];
  if (types.length > 0) patterns.push({ regex: `/(${types.join("|")})/`, allowTypeImports: true, message });
  const rules = { "@typescript-eslint/no-restricted-imports": ["error", { patterns }] };
  if (PURE.has(folder)) {
    const packages = [...PURE_PACKAGES, ...(FURTHER_PACKAGES[folder] ?? [])];
    patterns.push({ regex: `^(?!\\.|(${packages.join("|")})$)`, message: `src/${folder} is pure.` });
    rules["no-restricted-globals"] = [
      "error",
      "fetch",
      "process",
      "performance",
      "setTimeout",
      "setInterval",
    ];
    rules["no-restricted-properties"] = [
      "error",
      { object: "Date", property: "now", message: "Time is passed in." },
      { object: "Math", property: "random", message: "Randomness is passed in." },
    ];
  }
  return { files: [`src/${folder}/**/*.ts`], rules };
});

/** A new folder says in IMPORTS what it may import before it holds anything. */
const unlisted = {
  files: ["src/*/**/*.ts"],
  ignores: FOLDERS.map((folder) => `src/${folder}/**`),
  rules: {
    "no-restricted-syntax": [
      "error",
      { selector: "Program", message: "This folder is not in IMPORTS of eslint.config.js." },
    ],
  },
};

export default tseslint.config(
  { ignores: ["dist/", "node_modules/", ".peers/", "test/fixtures/"] },
  js.configs.recommended,
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: {
      parserOptions: { projectService: { allowDefaultProject: ["eslint.config.js"] } },
    },
    rules: {
      // Numbers in messages are what our errors are made of.
      "@typescript-eslint/restrict-template-expressions": [
        "error",
        { allowNumber: true, allowBoolean: true },
      ],
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/switch-exhaustiveness-check": [
        "error",
        { considerDefaultExhaustiveForUnions: true },
      ],
      eqeqeq: "error",
      "no-console": "error",
    },
  },
  {
    files: ["src/*.ts"],
    rules: {
      "@typescript-eslint/no-restricted-imports": [
        "error",
        { patterns: [{ regex: "^\\./cli/", message: "The assembly does not know the command line." }] },
      ],
    },
  },
  ...layering,
  { files: [ENGINE_PROGRAM], rules: { "@typescript-eslint/no-restricted-imports": "off" } },
  unlisted,
  {
    files: ["eslint.config.js"],
    extends: [tseslint.configs.disableTypeChecked],
    languageOptions: { globals: {} },
  },
  {
    // AssemblyScript parses as TypeScript, but has types and globals of its own, and casts that look needless.
    files: ["src/engine/assembly/**/*.ts"],
    extends: [tseslint.configs.disableTypeChecked],
    languageOptions: { parserOptions: { projectService: false } },
    rules: {
      "no-undef": "off",
      "prefer-const": "error",
      "no-loss-of-precision": "off",
      "@typescript-eslint/no-restricted-imports": "off",
    },
  },
);
