import js from "@eslint/js";
import tseslint from "typescript-eslint";

/**
 * Which folders of src/ a folder may import from. The folders are the journey of a sample and imports go one way;
 * "types" means type imports only.
 */
const IMPORTS = {
  hash: { may: [], why: "pure: keys and placement know no user, clock, I/O or metric" },
  wire: { may: [], why: "pure: bytes in, bytes out" },
  relabel: { may: [], why: "pure: rules know no user, clock, I/O or metric" },
  telemetry: { may: [], why: "stages report to it through its callers" },
  engine: { may: [], why: "the engine moves bytes and knows no label semantics" },
  route: {
    may: ["hash", "wire", "relabel", "engine"],
    why: "routing is a pure function of configuration and series",
  },
  deliver: { may: ["wire"], why: "a sender knows parcels, not where they come from" },
  receive: { may: ["wire"], why: "receive meets the other stages by small interfaces" },
  config: {
    may: [],
    types: ["hash", "route", "deliver", "receive"],
    why: "config produces the stages' options",
  },
  admin: { may: ["hash", "wire", "route"], why: "admin meets the other stages by small interfaces" },
};
const FOLDERS = [...Object.keys(IMPORTS), "cli"];
const PURE = new Set(["hash", "wire", "relabel", "route", "engine"]);

const layering = Object.entries(IMPORTS).map(([folder, { may, types = [], why }]) => {
  const forbidden = FOLDERS.filter((other) => other !== folder && !may.includes(other));
  const message = `src/${folder} does not import this (${why}): see IMPORTS in eslint.config.js.`;
  const patterns = [
    {
      regex: `^\\.\\./(${forbidden.filter((other) => !types.includes(other)).join("|")})/`,
      message,
    },
    { regex: "(^|/)gateway\\.ts$", message: "Only src/cli and cmd import the assembly." },
  ];
  if (types.length > 0) {
    patterns.push({ regex: `^\\.\\./(${types.join("|")})/`, allowTypeImports: true, message });
  }
  if (PURE.has(folder)) {
    patterns.push({
      regex: "^node:(fs|http|https|net|timers|child_process)",
      message: `src/${folder} does no I/O.`,
    });
  }
  return {
    files: [`src/${folder}/**/*.ts`],
    rules: {
      "@typescript-eslint/no-restricted-imports": ["error", { patterns }],
    },
  };
});

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
    files: ["src/gateway.ts"],
    rules: {
      "@typescript-eslint/no-restricted-imports": [
        "error",
        { patterns: [{ regex: "^\\./cli/", message: "The assembly does not know the command line." }] },
      ],
    },
  },
  ...layering,
  {
    files: ["eslint.config.js"],
    extends: [tseslint.configs.disableTypeChecked],
    languageOptions: { globals: {} },
  },
);
