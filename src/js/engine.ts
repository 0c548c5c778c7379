/**
 * One loaded instance, as the files of this folder see it: the module's functions, its memory, and whether it still lives.
 * Public functions take an `Engine` first; instance.ts binds them to what users hold.
 */
import { failDisposed } from "./errors.js";
import type { GlueModule } from "./glue-module.js";
import { WasmMemory } from "./memory.js";

/** A net for objects whose `dispose` was forgotten. Never relied on: it does not run inside a synchronous loop. */
interface Cleanup {
  readonly engine: WeakRef<Engine>;
  readonly pointer: number;
}

let registry: FinalizationRegistry<Cleanup> | undefined;

export class Engine {
  readonly glue: GlueModule;
  readonly memory: WasmMemory;
  #disposed = false;

  constructor(glue: GlueModule) {
    this.glue = glue;
    this.memory = new WasmMemory(glue);
  }

  get disposed(): boolean {
    return this.#disposed;
  }

  /** Throws "disposed" after `dispose`. First statement of every public function. */
  checkAlive(): void {
    if (this.#disposed) failDisposed("this attention instance");
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    // Workers are ended from outside: waiting for them to end by themselves would hang if one had never started.
    this.glue.PThread?.terminateAllThreads();
  }

  /** Frees `pointer` (from `memory.allocate`) some time after `owner` was collected, if `unregisterFromCleanup(owner)` was not called before. */
  registerForCleanup(owner: object, pointer: number): void {
    if (typeof FinalizationRegistry !== "function") return;
    registry ??= new FinalizationRegistry(({ engine, pointer: forgotten }) => {
      const alive = engine.deref();
      if (alive !== undefined && !alive.disposed) alive.memory.release(forgotten);
    });
    registry.register(owner, { engine: new WeakRef(this), pointer }, owner);
  }

  unregisterFromCleanup(owner: object): void {
    registry?.unregister(owner);
  }
}
