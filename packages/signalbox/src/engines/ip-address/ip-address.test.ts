import fc from "fast-check";
import { expect, it } from "vitest";
import {
  createPublicLookup,
  isIpAddress,
  isLoopbackAddress,
  isPrivateAddress,
  isPrivateHost,
  type ResolveAll,
} from "./ip-address.ts";

/** Addresses in the notation of a URL parser or a resolver. */
const PRIVATE: readonly (readonly [string, ...string[]])[] = [
  ["this machine", "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "::", "::1"],
  ["private networks", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1", "fc00::1", "fdff::1"],
  ["link-local networks, with metadata services", "169.254.169.254", "fe80::1", "fe80::1%eth0", "febf::1"],
  ["carrier-grade NAT", "100.64.0.1", "100.100.100.200", "100.127.255.255"],
  ["other metadata services", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"],
  [
    "documentation and benchmarks",
    "192.0.2.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
  ],
  ["documentation in IPv6", "2001:db8::1", "3fff::1", "3fff:fff::1"],
  ["ranges of protocols", "192.0.0.1", "192.88.99.1", "2001::1", "2001:1::1", "2001:20::1", "2001:1ff::1"],
  ["multicast and reserved", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "ff02::1"],
  ["IPv4 mapped into IPv6", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:10.0.0.7", "::ffff:a9fe:a9fe"],
  ["IPv4-compatible IPv6", "::127.0.0.1", "::7f00:1", "::8.8.8.8", "::10.0.0.1"],
  ["IPv4 translated", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::"],
  ["unassigned IPv6", "100::1", "100:0:0:1::1", "200::1", "1000::1", "4000::1", "5f00::1", "fec0::1"],
  ["no address", "", "example.com", "127.1", "1.2.3", "300.1.1.1", "[::1]"],
];

const PUBLIC = [
  "1.1.1.1",
  "8.8.8.8",
  "9.255.255.255",
  "11.0.0.0",
  "93.184.215.14",
  "100.63.255.255",
  "100.128.0.0",
  "168.63.129.15",
  "172.15.255.255",
  "172.32.0.0",
  "192.0.1.1",
  "198.17.255.255",
  "198.20.0.0",
  "223.255.255.255",
  "::ffff:8.8.8.8",
  "2000::1",
  "2001:200::1",
  "2001:4860:4860::8888",
  "2003::1",
  "2606:4700::1111",
  "2a00:1450::1",
  "3ffe::1",
];

it.each(PRIVATE)("classifies addresses of %s as private", (_, ...addresses) => {
  expect(addresses.filter((address) => !isPrivateAddress(address))).toEqual([]);
});

it("classifies addresses next to those ranges as public", () => {
  expect(PUBLIC.filter((address) => isPrivateAddress(address))).toEqual([]);
});

it("classifies an IPv4 address the same in IPv4 and in IPv6 notation", () => {
  fc.assert(
    fc.property(fc.ipV4(), (address) => isPrivateAddress(address) === isPrivateAddress(`::ffff:${address}`)),
  );
});

it.each([
  "https://127.1/",
  "https://2130706433/",
  "https://0x7f000001/",
  "https://0177.0.0.1/",
  "https://[::127.0.0.1]/",
  "https://[0:0:0:0:0:0:7f00:1]/",
  "https://[::ffff:127.0.0.1]/",
  "https://localhost/",
  "https://LOCALHOST./",
  "https://app.localhost/",
  "https://①②⑦.0.0.1/",
])("recognises %s as private without resolving it", (url) => {
  expect(isPrivateHost(new URL(url).hostname)).toBe(true);
});

it("leaves other names to the resolver", () => {
  expect(["example.com", "localhost.example.com", "notlocalhost"].filter(isPrivateHost)).toEqual([]);
});

type Outcome = { error: Error | null; addresses: unknown };

function lookUp(
  hostname: string,
  answers: readonly string[],
  all: boolean,
): { outcome: Outcome; queries: number } {
  let queries = 0;
  const resolve: ResolveAll = (_, __, callback) => {
    queries += 1;
    callback(
      null,
      answers.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );
  };
  const outcome: Outcome = { error: null, addresses: null };
  createPublicLookup(resolve, (name) => new Error(`${name} is private`))(
    hostname,
    { all },
    (error, addresses) => Object.assign(outcome, { error, addresses }),
  );
  return { outcome, queries };
}

it.each([["127.0.0.1"], ["::1"], ["::127.0.0.1"], ["93.184.215.14", "10.0.0.7"], []])(
  "refuses a name that resolves to %s %s",
  (...answers) => {
    expect(lookUp("provider.example", answers, true).outcome.error?.message).toBe(
      "provider.example is private",
    );
    expect(lookUp("provider.example", answers, false).outcome.error?.message).toBe(
      "provider.example is private",
    );
  },
);

it("refuses a local name without a query, and returns the addresses of a public one", () => {
  expect(lookUp("localhost", ["93.184.215.14"], true)).toMatchObject({
    queries: 0,
    outcome: { addresses: "" },
  });
  expect(lookUp("provider.example", ["93.184.215.14"], false).outcome).toEqual({
    error: null,
    addresses: "93.184.215.14",
  });
  expect(lookUp("provider.example", ["93.184.215.14"], true).outcome.addresses).toEqual([
    { address: "93.184.215.14", family: 4 },
  ]);
});

it("recognises addresses, and the loopback ones among them", () => {
  const loopback = ["127.0.0.1", "127.255.0.3", "::1", "::ffff:127.0.0.1"];
  const others = ["0.0.0.0", "::", "10.0.0.1", "::ffff:10.0.0.1", "8.8.8.8", "2606:4700::1111"];
  const names = ["", "localhost", "127.1", "[::1]", "example.com"];
  expect([...loopback, ...others].filter((text) => !isIpAddress(text))).toEqual([]);
  expect(names.filter(isIpAddress)).toEqual([]);
  expect([...loopback, ...others, ...names].filter(isLoopbackAddress)).toEqual(loopback);
});

it("never connects to a private address, whatever the resolver answers", () => {
  const address = fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom("127.0.0.1", "::1", "10.0.0.1", "8.8.8.8"));
  fc.assert(
    fc.property(fc.array(address, { maxLength: 4 }), fc.boolean(), (answers, all) => {
      const { error } = lookUp("provider.example", answers, all).outcome;
      expect(error === null).toBe(answers.length > 0 && !answers.some(isPrivateAddress));
    }),
  );
});
