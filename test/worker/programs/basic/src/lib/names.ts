export enum Level {
  Low = "low",
}

export const fromAlias = "alias";
