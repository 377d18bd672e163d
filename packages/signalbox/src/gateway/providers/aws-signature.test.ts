import { expect, it } from "vitest";
import { parseAwsCredentials, signAws } from "./aws-signature.ts";

/** Keys, time and results of the test suite that AWS publishes for Signature Version 4. */
const CREDENTIALS = {
  accessKeyId: "AKIDEXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
  sessionToken: null,
};
const REQUEST = {
  method: "GET",
  host: "example.amazonaws.com",
  target: "/",
  body: Buffer.from(""),
  region: "us-east-1",
  service: "service",
  now: Date.UTC(2015, 7, 30, 12, 36, 0),
};

const signatureOf = (request: Partial<typeof REQUEST>) =>
  /Signature=([0-9a-f]{64})$/.exec(signAws({ ...REQUEST, ...request }, CREDENTIALS)[1] ?? "")?.[1];

it.each([
  ["get-vanilla", {}, "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"],
  ["post-vanilla", { method: "POST" }, "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"],
  [
    "get-vanilla-query-order-key-case",
    { target: "/?Param2=value2&Param1=value1" },
    "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
  ],
])("signs as AWS's test %s", (_, request, signature) => {
  expect(signatureOf(request)).toBe(signature);
});

/** The examples of the documentation of S3. */
it.each([
  ["GET bucket lifecycle", "/?lifecycle", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"],
  [
    "list objects",
    "/?max-keys=2&prefix=J",
    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
  ],
])("signs for S3 as the documented example %s", (_, target, signature) => {
  const [, authorization = ""] = signAws(
    {
      ...REQUEST,
      target,
      host: "examplebucket.s3.amazonaws.com",
      service: "s3",
      now: Date.UTC(2013, 4, 24),
    },
    {
      accessKeyId: "AKIAIOSFODNN7EXAMPLE",
      secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
      sessionToken: null,
    },
  );
  expect(authorization).toContain(`Signature=${signature}`);
});

it("names the signed headers, the time and the session token", () => {
  const headers = signAws(REQUEST, { ...CREDENTIALS, sessionToken: "session" });
  expect(headers.slice(2)).toEqual(["x-amz-date", "20150830T123600Z", "x-amz-security-token", "session"]);
  expect(headers[1]).toContain("SignedHeaders=host;x-amz-date;x-amz-security-token");
  expect(headers[1]).toContain("Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request");
});

it("signs the body and every part of the target", () => {
  const all = [
    {},
    { body: Buffer.from("{}") },
    { target: "/model/a%3A0/invoke" },
    { target: "/model/a:0/invoke" },
    { target: "/?a=1" },
    { region: "eu-west-1" },
  ].map(signatureOf);
  expect(new Set(all).size).toBe(all.length);
});

it("reads access keys, and nothing else", () => {
  const id = "AKIAIOSFODNN7EXAMPLE";
  const secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
  const expected = { accessKeyId: id, secretAccessKey: secret, sessionToken: null };
  expect(parseAwsCredentials(`${id}:${secret}`)).toEqual(expected);
  expect(parseAwsCredentials(`${id}:${secret}:tok/en=`)).toEqual({ ...expected, sessionToken: "tok/en=" });
  expect(parseAwsCredentials(JSON.stringify({ AccessKeyId: id, SecretAccessKey: secret }))).toEqual(expected);
  for (const text of ["", "ABSKbedrock-api-key", "{", "{}", `${id}:`, `${id}:${secret} x`]) {
    expect(parseAwsCredentials(text)).toBeNull();
  }
});
