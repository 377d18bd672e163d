/**
 * `getDurableObjectClass()` of a loaded program: a class that facets are started with. The object of the facet runs in the process of the program; its database, its events and
 * their order are here, as with every facet. When the process ends, the facet is aborted: its next event starts both again.
 */
import { createStub, OBJECT, type ObjectClass, type ObjectContext } from "../../agents/calls.ts";
import { FacetStorage } from "./facet-storage.ts";
import type { LoadedProgram } from "./loaded-program.ts";

/** Runs the function with the program, which is started if it does not run. */
export type UseProgram = <T>(work: (program: LoadedProgram) => Promise<T>) => Promise<T>;

let lastFacet = 0;

/** Objects in memory here keep theirs in the process. */
const FORGOTTEN = new FinalizationRegistry<() => void>((forget) => forget());

export function createLoadedClass(name: string | null, props: unknown, use: UseProgram): ObjectClass {
  // A function and no class: its result is the stub.
  function LoadedObject(context: ObjectContext): object {
    return createLoadedObject(name, props, use, context);
  }
  Object.defineProperty(LoadedObject, "name", { value: name ?? "default" });
  Object.defineProperty(LoadedObject.prototype, OBJECT, { value: true });
  return LoadedObject as unknown as ObjectClass;
}

function createLoadedObject(
  name: string | null,
  props: unknown,
  use: UseProgram,
  context: ObjectContext,
): object {
  lastFacet += 1;
  const facet = lastFacet;
  const abort = (reason: string) => {
    try {
      context.abort(reason);
    } catch {
      // It throws for the code that called it.
    }
  };
  const constructed = use(async (program) => {
    program.facets.set(facet, { storage: new FacetStorage(context.storage), abort });
    const { id } = context;
    try {
      await program.construct(facet, name, { text: String(id), name: id.name }, props ?? context.props);
    } catch (error) {
      program.facets.delete(facet);
      throw error;
    }
    return program;
  });
  // Every event awaits it, and fails with the error itself; the event after that constructs the object anew.
  constructed.catch((error: unknown) => setImmediate(abort, String(error)));
  const send = async (path: readonly string[], args: readonly unknown[] | null) => {
    const own = await constructed;
    return use((program) => {
      if (program !== own) throw new Error("The program of the facet has ended.");
      return program.invoke(facet, path, args);
    });
  };
  const stub = createStub(
    { send },
    {
      isCallable: false,
      isService: true,
      members: { fetch: async (request: Request) => (await send(["fetch"], [request])) as Response },
    },
  );
  const forget = () => {
    // A program that does not run has nothing to forget.
    constructed.then((program) => program.forget(facet)).catch(() => undefined);
  };
  FORGOTTEN.register(stub, forget);
  return stub;
}
