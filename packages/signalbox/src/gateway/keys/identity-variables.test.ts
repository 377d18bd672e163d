import { expect, it } from "vitest";
import { identityVariables } from "./identity-variables.ts";

it("are those of the clouds whose identity a variable describes", () => {
  const own = { AWS_ACCESS_KEY_ID: "AKIA", AZURE_CLIENT_SECRET: "s" };
  expect(identityVariables(own)).toEqual([]);
  expect(identityVariables({ ...own, AWS_BEDROCK_API_KEY: "AKIA:secret" })).toEqual([]);
  const described = identityVariables({ ...own, AWS_BEDROCK_API_KEY_X: '{"identity":"environment"}' });
  expect(described).toContain("AWS_SECRET_ACCESS_KEY");
  expect(described).not.toContain("AZURE_CLIENT_SECRET");
  expect(identityVariables({ AZURE_OPENAI_API_KEY: '{"identity":"environment"}' })).toContain(
    "AZURE_CLIENT_SECRET",
  );
});
