/** Properties are tried on the same values in every run. */
import fc from "fast-check";

fc.configureGlobal({ seed: 20260101 });
