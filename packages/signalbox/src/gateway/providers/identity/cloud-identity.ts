/**
 * A cloud identity in the place of a key: the text of an operator's variable or file that says where the machine gets its credentials
 * (`{"identity":"instance"}`), and not the credentials themselves.
 */
import { z } from "zod";
import { parseJson } from "./ask-server.ts";

/** The clouds, by the provider whose calls they authorise. */
export const CLOUDS = {
  "aws-bedrock": "aws",
  "google-vertex-ai": "google",
  "azure-openai": "azure",
} as const;

export type Cloud = (typeof CLOUDS)[keyof typeof CLOUDS];

const SESSION_NAME = /^[\w+=,.@-]{2,64}$/;
const role = z.string().regex(/^arn:[\w-]+:iam::\d*:role\/[\x21-\x7e]{1,512}$/, "expected the ARN of a role");

const aws = z.strictObject({
  identity: z.enum(["environment", "web_identity", "container", "instance"]),
  /** The role to take with these credentials, or several, one after the other. */
  role_arn: z.union([role, z.array(role).min(1).max(5)]).optional(),
  /** Of the last role. */
  external_id: z.string().min(2).max(1224).optional(),
  session_name: z.string().regex(SESSION_NAME).optional(),
});

const google = z.strictObject({
  identity: z.enum(["metadata", "workload_identity"]),
  /** One of several accounts of the machine. */
  service_account: z.string().min(1).max(256).optional(),
});

const azure = z.strictObject({
  identity: z.enum(["environment", "managed_identity", "workload_identity"]),
  /** One of several identities of the machine. */
  client_id: z.string().min(1).max(256).optional(),
  /** For clouds of governments, whose resources have another name. */
  resource: z.url({ protocol: /^https$/ }).optional(),
});

const DESCRIPTIONS = { aws, google, azure } as const;

export type AwsIdentity = Readonly<z.infer<typeof aws>>;
export type GoogleIdentity = Readonly<z.infer<typeof google>>;
export type AzureIdentity = Readonly<z.infer<typeof azure>>;

/** Whether a text describes an identity, well or badly: it is then never sent as a key. */
export function isIdentity(text: string): boolean {
  if (!text.startsWith("{") || !text.includes('"identity"')) return false;
  const value = parseJson(text);
  return value === undefined || (typeof value === "object" && value !== null && "identity" in value);
}

/** Throws an error that says what is wrong. */
export function parseIdentity(cloud: "aws", text: string): AwsIdentity;
export function parseIdentity(cloud: "google", text: string): GoogleIdentity;
export function parseIdentity(cloud: "azure", text: string): AzureIdentity;
export function parseIdentity(cloud: Cloud, text: string): AwsIdentity | GoogleIdentity | AzureIdentity {
  const { success, data, error } = DESCRIPTIONS[cloud].safeParse(parseJson(text));
  if (success) return data;
  const [issue] = error.issues;
  const where = issue?.path.join(".") ?? "";
  throw new Error(
    `the description of the identity is not valid: ${where === "" ? "" : `${where}: `}${issue?.message ?? ""}`,
  );
}
