/** The variables that contain credentials of the cloud identities which other variables describe. Programs inside the service must not see them. */
import { CLOUDS, isIdentity } from "../providers/identity/cloud-identity.ts";
import { envPrefix, isOf } from "./key-source.ts";

const CREDENTIALS = {
  aws: [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
  ],
  // A machine of AWS may have an identity of Google.
  google: ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"],
  azure: ["AZURE_CLIENT_SECRET", "IDENTITY_HEADER"],
} as const;

export function identityVariables(environment: Readonly<Record<string, string | undefined>>): string[] {
  const all = Object.entries(environment);
  return Object.entries(CLOUDS).flatMap(([slug, cloud]) => {
    const prefix = envPrefix(slug);
    const isUsed = all.some(([name, text = ""]) => isOf(prefix, name) && isIdentity(text));
    return isUsed ? CREDENTIALS[cloud] : [];
  });
}
