import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { makeCertificate, type TestCertificate } from "../../../../../test/support/test-certificate.ts";
import { ServerCertificate } from "./server-certificate.ts";

let folder: string;
let one: TestCertificate;
let two: TestCertificate;
let files: { cert: string; key: string; minVersion: "TLSv1.2" };
const keyOf = (certificate: TestCertificate) => execFileSync("cat", [certificate.key], { encoding: "utf8" });

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "signalbox-certificate-"));
  one = makeCertificate(folder, "one", "DNS:one.example");
  two = makeCertificate(folder, "two", "DNS:two.example");
  files = { cert: join(folder, "live.crt"), key: join(folder, "live.key"), minVersion: "TLSv1.2" };
});
afterAll(() => rmSync(folder, { recursive: true }));
beforeEach(() => write(one));

function write(certificate: TestCertificate): void {
  writeFileSync(files.cert, certificate.pem);
  writeFileSync(files.key, keyOf(certificate));
}

const DAY = 86_400_000;

it("names what is wrong with the files", () => {
  const message = (given: Partial<typeof files>, now?: () => number) => {
    try {
      return new ServerCertificate({ ...files, ...given }, now).names;
    } catch (error) {
      return `${(error as Error).name}: ${(error as Error).message.replaceAll(`${folder}/`, "")}`;
    }
  };
  const text = (name: string, content: string) => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  expect(message({})).toBe("DNS:one.example");
  expect(message({ cert: join(folder, "none") })).toBe(
    "CertificateError: cannot read the TLS certificate none: the file does not exist",
  );
  expect(message({ key: folder })).toMatch(/cannot read the TLS private key .*: it is a folder/);
  expect(message({ cert: files.key })).toMatch(
    /live.key contains no "BEGIN CERTIFICATE": it is a private key/,
  );
  expect(message({ key: files.cert })).toMatch(/live.crt contains no "PRIVATE KEY": it is a certificate/);
  expect(message({ cert: text("der", "\0\0") })).toMatch(/PEM is expected/);
  expect(message({ cert: text("cut", one.pem.slice(0, 200)) })).toMatch(
    /the TLS certificate cut cannot be parsed/,
  );
  expect(message({ key: text("cut.key", keyOf(one).slice(0, 60)) })).toMatch(
    /private key cut.key cannot be parsed/,
  );
  expect(message({ key: two.key })).toMatch(/two.key does not belong to the first certificate in live.crt/);
  expect(message({}, () => Date.now() + 31 * DAY)).toMatch(/live.crt expired on \d{4}-\d\d-\d\d$/);
  const locked = join(folder, "locked.key");
  execFileSync("openssl", ["ec", "-in", one.key, "-out", locked, "-aes256", "-passout", "pass:secret"], {
    stdio: "ignore",
  });
  expect(message({ key: locked })).toMatch(/locked.key has a passphrase/);
});

it("a new pair is reported to listeners once, and a pair that was refused is reported once unless somebody asks", () => {
  const certificate = new ServerCertificate(files);
  const used: string[] = [];
  certificate.onChange(({ cert }) => used.push(cert.toString()));
  expect(certificate.reload()).toBe(false);
  // The renewal has written the certificate, but not yet the key.
  writeFileSync(files.cert, two.pem);
  expect(() => certificate.reload()).toThrow("does not belong to");
  expect(certificate.reload()).toBe(false);
  expect(() => certificate.reload({ isAsked: true })).toThrow("does not belong to");
  expect([certificate.names, used]).toEqual(["DNS:one.example", []]);
  writeFileSync(files.key, keyOf(two));
  expect(certificate.reload()).toBe(true);
  expect([certificate.names, used]).toEqual(["DNS:two.example", [two.pem]]);
  expect(certificate.leafPem.trim()).toBe(two.pem.trim());
});

it("a file that is missing for a moment is not reported; one that stays away is, once", () => {
  const certificate = new ServerCertificate(files);
  rmSync(files.key);
  expect(certificate.reload()).toBe(false);
  expect(() => certificate.reload()).toThrow("does not exist");
  expect(certificate.reload()).toBe(false);
  expect(() => certificate.reload({ isAsked: true })).toThrow("does not exist");
  write(one);
  expect(certificate.reload()).toBe(false);
});

it("an expired certificate does not replace the one in use", () => {
  let now = Date.now();
  const certificate = new ServerCertificate(files, () => now);
  now += 31 * DAY;
  write(two);
  expect(() => certificate.reload()).toThrow("expired on");
  expect([certificate.names, certificate.expiresAt < now]).toEqual(["DNS:one.example", true]);
});
