import { expect, it } from "vitest";
import { HTMLRewriter } from "./html-rewriter.ts";
import type { Comment, Doctype, DocumentEnd, Element, EndTag, TextChunk } from "./tokens.ts";

type Rewrite = (rewriter: HTMLRewriter) => HTMLRewriter;

/** The output, the same for the input as a whole and for every single byte as a piece. */
async function rewrite(html: string, change: Rewrite): Promise<string> {
  const whole = await change(new HTMLRewriter()).transform(new Response(html)).text();
  const bytes = new TextEncoder().encode(html);
  const cut = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const byte of bytes) controller.enqueue(new Uint8Array([byte]));
      controller.close();
    },
  });
  expect(await change(new HTMLRewriter()).transform(new Response(cut)).text()).toBe(whole);
  return whole;
}

const mark: Rewrite = (rewriter) => rewriter;

it("what no handler changes is written as it was", async () => {
  const html = `<!DOCTYPE html PUBLIC "-//W3C//DTD" "x.dtd"><HTML lang=de>\n<!-- a > b --><p class='x' DATA-y="<b>">1 < 2 &amp; ü€😀</P ><br/>
<script>if (a < b) "</scr" + "ipt>"</script><svg><path d="m"/></svg></><?php x ?><!x><a href=x/y>z</a><p title="unfinished`;
  expect(await rewrite(html, mark)).toBe(html);
  expect(await rewrite(html, (rewriter) => rewriter.on("*", { element: () => undefined }))).toBe(html);
});

it("attributes and tags of elements are read and changed", async () => {
  const seen: unknown[] = [];
  const change: Rewrite = (rewriter) =>
    rewriter.on("a[href]", {
      element(element: Element) {
        seen.push([
          element.tagName,
          [...element.attributes],
          element.getAttribute("HREF"),
          element.hasAttribute("x"),
        ]);
        element.setAttribute("href", `/to?"${element.getAttribute("href")}"`).removeAttribute("rel");
        element.setAttribute("target", "_blank");
        element.tagName = "b";
      },
    });
  expect(await rewrite(`<A href=one rel='r' ID=i>x</A><a>y</a>`, change)).toBe(
    `<b href="/to?&quot;one&quot;" ID=i target="_blank">x</b><a>y</a>`,
  );
  expect(seen[0]).toEqual([
    "a",
    [
      ["href", "one"],
      ["rel", "r"],
      ["id", "i"],
    ],
    "one",
    false,
  ]);
});

it("content is inserted at every place, escaped unless it is markup", async () => {
  const change: Rewrite = (rewriter) =>
    rewriter.on("p", {
      element(element: Element) {
        element.before("<1>").before("<i>2</i>", { html: true }).after("9").after("8");
        element.prepend("4").prepend("3").append("5").append(new Response("<6>"), { html: true });
        element.onEndTag((tag: EndTag) => void tag.before("e").after("f"));
      },
    });
  expect(await rewrite("<p>x</p>.", change)).toBe("&lt;1&gt;<i>2</i><p>34x5<6>e</p>f89.");
});

it.each([
  ["remove", (element: Element) => element.before("b").remove().after("a"), "ba"],
  ["replace", (element: Element) => element.replace("<hr>", { html: true }), "<hr>"],
  ["setInnerContent", (element: Element) => element.setInnerContent("<n>"), `<div id="d">&lt;n&gt;</div>`],
  ["removeAndKeepContent", (element: Element) => element.removeAndKeepContent(), "one <b>two</b>"],
] as const)("%s of an element", async (_name, act, expected) => {
  const change: Rewrite = (rewriter) =>
    rewriter.on("#d", { element: (element: Element) => void act(element) });
  expect(await rewrite(`(<div id="d">one <b>two</b></div>)`, change)).toBe(`(${expected})`);
});

it("texts arrive in pieces with an end, also inside of nested elements, and can be replaced", async () => {
  const texts: string[] = [];
  const change: Rewrite = (rewriter) => {
    let text = "";
    return rewriter.on("div", {
      text(chunk: TextChunk) {
        text += chunk.text;
        if (chunk.lastInTextNode) {
          texts.push(text);
          chunk.replace(text.toUpperCase());
          text = "";
        } else chunk.remove();
      },
    });
  };
  expect(await rewrite("x<div>one <b>t&amp;wo</b> three</div>y", change)).toBe(
    "x<div>ONE <b>T&amp;AMP;WO</b> THREE</div>y",
  );
  expect(texts.slice(0, 3)).toEqual(["one ", "t&amp;wo", " three"]);
});

it("comments, doctypes and the end of the document have handlers", async () => {
  const seen: unknown[] = [];
  const change: Rewrite = (rewriter) =>
    rewriter
      .onDocument({
        doctype: ({ name, publicId, systemId }: Doctype) => void seen.push([name, publicId, systemId]),
        comments(comment: Comment) {
          comment.text = `${comment.text}!`;
        },
        end: (end: DocumentEnd) => void end.append("<end>", { html: true }),
      })
      .on("p", { comments: (comment: Comment) => void comment.remove() });
  expect(await rewrite(`<!doctype html SYSTEM "s"><!--a--><p><!--b--></p>`, change)).toBe(
    `<!doctype html SYSTEM "s"><!--a!--><p></p><end>`,
  );
  expect(seen[0]).toEqual(["html", null, "s"]);
});

it.each([
  ["*", 7],
  ["li", 3],
  ["ul > li", 3],
  ["div > li", 0],
  ["div li", 3],
  ["li:first-child", 1],
  ["li:nth-child(2n+1)", 2],
  ["li:nth-child(even)", 1],
  ["li:nth-of-type(3)", 1],
  ["p:first-of-type", 1],
  ["li.a.b", 1],
  ["li:not(.a)", 2],
  ["#list", 1],
  ['[data-x="One"]', 1],
  ['[data-x="one" i]', 1],
  ["[data-x^=O][data-x$='e'][data-x*=n]", 1],
  ["[lang|=de]", 1],
  ["[class~=b]", 1],
  ["p, #list, li.a", 4],
] as const)("the selector %s finds %i elements", async (selector, count) => {
  let found = 0;
  const rewriter = new HTMLRewriter().on(selector, { element: () => void (found += 1) });
  const html = `<div><p lang=de-AT></p><ul id=list><li class="a b"><li data-x=One></li><li></li></ul><p></div>`;
  await rewriter.transform(new Response(html.replace('b"><li', 'b"></li><li'))).text();
  expect(found).toBe(count);
});

it("a selector that is not supported, and one that is none, are refused", () => {
  for (const selector of ["", "p:hover", "a + b", "a ~ b", "[", "p >", "a:not("])
    expect(() => new HTMLRewriter().on(selector, {}), selector).toThrow(/selector/);
});

it("handlers are awaited in order, and what one throws ends the stream", async () => {
  const order: string[] = [];
  const slow = (name: string) => async () => {
    await Promise.resolve();
    order.push(name);
  };
  await new HTMLRewriter()
    .on("p", { element: slow("p1") })
    .on("p", { element: slow("p2") })
    .on("b", { element: slow("b") })
    .transform(new Response("<p><b></b></p>"))
    .text();
  expect(order).toEqual(["p1", "p2", "b"]);
  const failing = new HTMLRewriter().on("p", {
    element() {
      throw new Error("no");
    },
  });
  await expect(failing.transform(new Response("<p>")).text()).rejects.toThrow("no");
});

it("the response keeps status and headers, without the length of its body", () => {
  const response = new Response("<p>", { status: 404, headers: { "content-length": "3", "x-a": "b" } });
  const changed = new HTMLRewriter().transform(response);
  expect([changed.status, Object.fromEntries(changed.headers)]).toEqual([
    404,
    { "content-type": "text/plain;charset=UTF-8", "x-a": "b" },
  ]);
  const empty = new Response(null, { status: 204 });
  expect(new HTMLRewriter().transform(empty)).toBe(empty);
});
