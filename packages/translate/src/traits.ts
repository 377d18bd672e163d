import type { Dialect } from "./dialect.ts";
import type { TargetTraits } from "./options.ts";

/** Traits guessed from a model's name, for the fields that the caller leaves open. */
export function defaultTraits(dialect: Dialect, model: string): Required<TargetTraits> {
  throw new Error(`no traits of ${model} in ${dialect}`);
}
