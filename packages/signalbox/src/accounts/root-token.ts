/** The root token: from the environment, or from a file in the data folder that is created at the first start. */
import { generateToken } from "@signalbox/protocol";
import { Secret } from "../core/secret.ts";
import { openSecretFile } from "./secret-file.ts";

export interface RootToken {
  readonly secret: Secret;
  /** The file with the token; null if the token is from the environment. */
  readonly file: string | null;
  /** True if this start created the token. Only then it is printed. */
  readonly isNew: boolean;
}

export function openRootToken(fromEnvironment: Secret | undefined, file: string): RootToken {
  if (fromEnvironment !== undefined) return { secret: fromEnvironment, file: null, isNew: false };
  const { text, isNew } = openSecretFile(file, generateToken);
  return { secret: new Secret(text), file, isNew };
}
