import fc from "fast-check";
import { expect, it } from "vitest";
import { isPrivateAddress } from "./private-address.ts";
import { createPublicLookup, isPrivateHost, type ResolveAll } from "./public-host.ts";

/** Addresses as a URL's parser leaves them, or as a resolver answers. */
const INSIDE: readonly (readonly [string, ...string[]])[] = [
  ["this machine", "127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "::", "::1"],
  ["private networks", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.0.1", "fc00::1", "fdff::1"],
  ["link-local, where metadata services live", "169.254.169.254", "fe80::1", "fe80::1%eth0", "febf::1"],
  ["shared and carriers' addresses", "100.64.0.1", "100.100.100.200", "100.127.255.255"],
  ["metadata services elsewhere", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"],
  [
    "documentation and benchmarks",
    "192.0.2.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
  ],
  ["documentation in IPv6", "2001:db8::1", "3fff::1", "3fff:fff::1"],
  ["protocols' own ranges", "192.0.0.1", "192.88.99.1", "2001::1", "2001:1::1", "2001:20::1", "2001:1ff::1"],
  ["multicast and reserved", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "ff02::1"],
  ["IPv4 mapped into IPv6", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:10.0.0.7", "::ffff:a9fe:a9fe"],
  ["IPv4-compatible IPv6", "::127.0.0.1", "::7f00:1", "::8.8.8.8", "::10.0.0.1"],
  ["IPv4 translated", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1", "2002:7f00:1::"],
  [
    "IPv6 that is not given out",
    "100::1",
    "100:0:0:1::1",
    "200::1",
    "1000::1",
    "4000::1",
    "5f00::1",
    "fec0::1",
  ],
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

it.each(INSIDE)("judges addresses of %s as not public", (_, ...addresses) => {
  expect(addresses.filter((address) => !isPrivateAddress(address))).toEqual([]);
});

it("judges addresses right beside those ranges as public", () => {
  expect(PUBLIC.filter((address) => isPrivateAddress(address))).toEqual([]);
});

it("judges an IPv4 address the same however it is written", () => {
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
])("knows that %s is inside without asking a resolver", (url) => {
  expect(isPrivateHost(new URL(url).hostname)).toBe(true);
});

it("leaves other names to the look-up", () => {
  expect(["example.com", "localhost.example.com", "notlocalhost"].filter(isPrivateHost)).toEqual([]);
});

type Looked = { error: Error | null; addresses: unknown };

function look(hostname: string, answers: readonly string[], all: boolean): { looked: Looked; asked: number } {
  let asked = 0;
  const resolve: ResolveAll = (_, __, callback) => {
    asked += 1;
    callback(
      null,
      answers.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
    );
  };
  const looked: Looked = { error: null, addresses: null };
  createPublicLookup(resolve, (name) => new Error(`${name} is inside`))(
    hostname,
    { all },
    (error, addresses) => Object.assign(looked, { error, addresses }),
  );
  return { looked, asked };
}

it.each([["127.0.0.1"], ["::1"], ["::127.0.0.1"], ["93.184.215.14", "10.0.0.7"], []])(
  "refuses a name that resolves to %s %s",
  (...answers) => {
    expect(look("provider.example", answers, true).looked.error?.message).toBe("provider.example is inside");
    expect(look("provider.example", answers, false).looked.error?.message).toBe("provider.example is inside");
  },
);

it("refuses a local name without a question, and hands a public one on", () => {
  expect(look("localhost", ["93.184.215.14"], true)).toMatchObject({ asked: 0, looked: { addresses: "" } });
  expect(look("provider.example", ["93.184.215.14"], false).looked).toEqual({
    error: null,
    addresses: "93.184.215.14",
  });
  expect(look("provider.example", ["93.184.215.14"], true).looked.addresses).toEqual([
    { address: "93.184.215.14", family: 4 },
  ]);
});
