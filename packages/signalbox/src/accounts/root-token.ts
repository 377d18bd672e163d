/** Where the root token comes from: the environment, else a file in the data folder, else it is made now and shown once. */
import { generateToken } from "@signalbox/protocol";
import { Secret } from "../core/secret.ts";
import { openSecretFile } from "./secret-file.ts";

export interface RootToken {
  readonly secret: Secret;
  /** Where it is kept; null when it came from the environment. */
  readonly file: string | null;
  /** True on the start that made it: the only time it is printed. */
  readonly isNew: boolean;
}

export function openRootToken(fromEnvironment: Secret | undefined, file: string): RootToken {
  if (fromEnvironment !== undefined) return { secret: fromEnvironment, file: null, isNew: false };
  const { text, isNew } = openSecretFile(file, generateToken);
  return { secret: new Secret(text), file, isNew };
}
