/** A key with the id of an account. The account need not exist yet; accounts are created through the management interface. */
import { isIdentifier } from "@signalbox/protocol";
import { z } from "zod";
import { DEFAULT_ACCOUNT } from "../core/default-account.ts";

export const accountKey = z
  .string()
  .refine(isIdentifier, "expected an account id of 1 to 64 letters, digits, _ or -")
  .default(DEFAULT_ACCOUNT);
