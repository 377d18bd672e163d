/** Which instance is meant, and the name of its database in the instance store. */
import { DEFAULT_ACCOUNT } from "../../core/default-account.ts";

export interface InstanceRef {
  /** Id of the account that owns the instance. */
  readonly account: string;
  /** Kebab-case name of the agent class. */
  readonly agent: string;
  readonly name: string;
}

/**
 * The text that identifies the instance in the store; the store names the file by its hash. Instances of the account `default` keep the text from
 * before instances belonged to accounts. An agent's name is never empty and contains no NUL, so that the two forms never collide.
 */
export function databaseName({ account, agent, name }: InstanceRef): string {
  return account === DEFAULT_ACCOUNT ? `${agent}\0${name}` : `\0${account}\0${agent}\0${name}`;
}
