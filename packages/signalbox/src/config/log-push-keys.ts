/** The section `gateway.logPush` of the configuration file. */
import { z } from "zod";
import { httpUrl } from "./gateway-keys.ts";

const variable = z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "expected the name of an environment variable");
const pathText = z
  .string()
  .regex(/^[\w.-]+(?:\/[\w.-]+)*$/, "expected letters, digits, _, ., - and / between them");

export const logPushKeys = z.strictObject({
  /** Address of the S3-compatible server, e.g. `https://s3.eu-central-1.amazonaws.com`. The bucket becomes part of the path. */
  endpoint: httpUrl,
  /** Name of the bucket. It must exist. */
  bucket: z.string().regex(/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/, "expected the name of a bucket"),
  /** Default `us-east-1`. */
  region: z.string().min(1).default("us-east-1"),
  /** Beginning of the names of objects. Default `signalbox`. */
  prefix: pathText.default("signalbox"),
  /** Environment variable with the id of the access key. Default `AWS_ACCESS_KEY_ID`; `AWS_SESSION_TOKEN` is used if it is set. */
  accessKeyId: variable.default("AWS_ACCESS_KEY_ID"),
  /** Environment variable with the secret of the access key. Default `AWS_SECRET_ACCESS_KEY`. */
  secretAccessKey: variable.default("AWS_SECRET_ACCESS_KEY"),
  /** Minutes between two copies. Default 60. */
  intervalMinutes: z.int().min(1).max(1440).default(60),
  /** With request and response bodies. Default true. */
  bodies: z.boolean().default(true),
  /** Only these accounts. Default: all. */
  accounts: z.array(z.string().min(1)).optional(),
});
