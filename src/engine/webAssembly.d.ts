/** What the engine uses of the WebAssembly global; TypeScript declares it for browsers only. */
declare namespace WebAssembly {
  type Module = object;
  const Module: new (bytes: Uint8Array) => Module;
  interface Instance {
    readonly exports: unknown;
  }
  const Instance: new (module: Module, imports?: Readonly<Record<string, unknown>>) => Instance;
  const RuntimeError: new (message?: string) => Error;
  interface Memory {
    readonly buffer: ArrayBuffer;
  }
}
