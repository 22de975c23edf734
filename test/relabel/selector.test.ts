import { describe, expect, it } from "vitest";
import { RelabelError } from "../../src/relabel/errors.ts";
import { parseCondition } from "../../src/relabel/selector.ts";
import { VictoriaMetricsLabels } from "../../src/relabel/victoriaMetricsLabels.ts";

const SERIES = new VictoriaMetricsLabels([
  ["__name__", "m"],
  ["a", "foo"],
  ["b", "bar"],
  ["lines", "x\ny"],
  ["tail", "x\n"],
]);

describe("a selector, as vmagent reads it", () => {
  it.each([
    { name: "a metric name", selector: "m" },
    { name: "a name with empty braces", selector: "m{}" },
    { name: "a filter", selector: '{a="foo"}' },
    { name: "a comma at the end", selector: '{a="foo",}' },
    { name: "a name and filters", selector: 'm{a="foo",b!="x"}' },
    { name: "blanks and line feeds", selector: ' m {a\n=\n"foo"\t, b = "bar" }' },
    { name: "comments", selector: '# one\nm{a="foo"} # two' },
    { name: "parentheses around it", selector: '((m{a="foo"}))' },
    { name: "or, where the first matches", selector: '{a="foo" or b="x"}' },
    { name: "or, where the second matches, in capitals", selector: '{a="x",b="x" OR b="bar"}' },
    { name: "a name before an or, which holds for both", selector: 'm{a="x" or b="bar"}' },
    { name: "the name of one alternative, for the others", selector: '{a="x" or "m",b="x" or b="bar"}' },
    { name: "several names, which hold for their own", selector: '{"n",a="x" or "k" or b="bar"}' },
    { name: "an alternative with its own say on the name", selector: '{"n" or __name__=~"m|k",a="foo"}' },
    { name: "an empty name, which is none", selector: '{__name__="" or b="bar"}' },
    { name: "a label that is called or", selector: '{or="" or a="x"}' },
    { name: "single quotes", selector: "{a='foo'}" },
    { name: "back quotes", selector: "{a=`foo`}" },
    { name: "strings in a sum", selector: `{a="f"+'o' + \`o\`}` },
    { name: "escapes in a string", selector: '{a="\\x66\\157\\u006f",lines="x\\ny"}' },
    { name: "a single quote in single quotes", selector: "{a!='f\\'oo'}" },
    { name: "double quotes in single quotes", selector: "{a!='\"'}" },
    { name: "a label in quotes", selector: '{"a"="foo"}' },
    { name: "the metric name in quotes", selector: '{"m",a="foo"}' },
    { name: "the metric name in quotes behind others", selector: "{b=\"bar\",'m'}" },
    { name: "the same metric name twice", selector: 'm{"m",__name__="m"}' },
    { name: "the metric name as a label", selector: '{__name__=~"m|n"}' },
    { name: "escapes in names", selector: '\\x6d{\\a="foo",\\u0062="bar"}' },
    { name: "escapes of names in quotes", selector: "{\"\\x6d\",'\\a'=\"foo\",`\\u0062`='bar'}" },
    { name: "half an escape in a name, which is none", selector: '{"\\x6"="",a="foo"}' },
    { name: "words of MetricsQL as labels", selector: 'm{by="",inf="",sum=""}' },
    { name: "letters beyond ASCII", selector: '{é=""}' },
    { name: "a regex, which is anchored", selector: '{a=~"f.*"}' },
    { name: "a regex that does not match", selector: '{a!~"f"}' },
    { name: "a regex with anchors of its own", selector: '{a=~"^foo$"}' },
    { name: "a dot for a line feed", selector: '{lines=~"x.y"}' },
    { name: "a missing label, which is empty", selector: '{z="",z=~"|x",z!="x",z!~".+"}' },
  ])("matches: $name", ({ selector }) => {
    expect(parseCondition([selector])(SERIES)).toBe(true);
  });

  it.each([
    { name: "another name", selector: "n" },
    { name: "no filter at all", selector: "{}" },
    { name: "one filter of two", selector: '{a="foo",b="x"}' },
    { name: "no alternative", selector: '{a="x" or b="x"}' },
    { name: "another name before an or", selector: 'n{a="foo" or b="bar"}' },
    { name: "a name in quotes, for the other alternative", selector: '{"n",a="x" or b="bar"}' },
    { name: "a name as a label, for the other alternative", selector: '{a="foo" or __name__="n",b="bar"}' },
    { name: "a name twice, for the third alternative", selector: '{"n" or "n",a="x" or b="bar"}' },
    { name: "an escape of strings in a name", selector: '{"\\141"="foo"}' },
    { name: "two names of which the first is empty", selector: '{__name__="",__name__="m"}' },
    { name: "a part of a value", selector: '{a=~"f"}' },
    { name: "a missing label that should not be empty", selector: '{z!=""}' },
    { name: "a label that should be empty", selector: '{a=""}' },
    { name: "a word of MetricsQL as a metric name", selector: "sum" },
    { name: "a dot that is all behind a literal, for a line feed", selector: '{tail=~"x."}' },
  ])("does not match: $name", ({ selector }) => {
    expect(parseCondition([selector])(SERIES)).toBe(false);
  });

  it("finds no metric name equal to another, not even to none, where there is none", () => {
    const nameless = new VictoriaMetricsLabels([["a", "1"]]);
    expect(parseCondition(['{__name__=""}'])(nameless)).toBe(false);
    expect(parseCondition(['{__name__!="x"}'])(nameless)).toBe(true);
    expect(parseCondition(['{__name__=~""}'])(nameless)).toBe(true);
  });
});

describe("parentheses that are more than recursion could take", () => {
  const many = 100_000;

  it("are read, as vmagent does", () => {
    expect(parseCondition([`${"(".repeat(many)}m${")".repeat(many)}`])(SERIES)).toBe(true);
  });

  it.each([
    {
      name: "one is open",
      selector: `${"(".repeat(many)}m${")".repeat(many - 1)}`,
      reason: "got the end where a )",
    },
    {
      name: "one is too many",
      selector: `${"(".repeat(many)}m${")".repeat(many + 1)}`,
      reason: "got ) where the end",
    },
    { name: "they are all there is", selector: "(".repeat(many), reason: "got the end where a metric name" },
  ])("are refused with a reason: $name", ({ selector, reason }) => {
    expect(() => parseCondition([selector])).toThrow(reason);
  });
});

describe("several selectors", () => {
  it("match when one does", () => {
    expect(parseCondition(["n", "m"])(SERIES)).toBe(true);
    expect(parseCondition(["n", "{}"])(SERIES)).toBe(false);
  });

  it("match everything when there are none", () => {
    expect(parseCondition([])(SERIES)).toBe(true);
  });
});

describe("what is no selector", () => {
  it.each([
    { name: "nothing", selector: "", reason: "got the end where a metric name or a { should be" },
    { name: "only a comment", selector: "# m", reason: "got the end where" },
    { name: "empty parentheses", selector: "()", reason: "got ) where a metric name or a {" },
    { name: "open parentheses", selector: "(m", reason: "got the end where a ) should be" },
    { name: "an open brace", selector: 'm{a="x"', reason: "got the end where a comma, an or, or a }" },
    { name: "a brace too many", selector: "m{}}", reason: "got } where the end should be" },
    { name: "only a comma", selector: "{,}", reason: "got , where a label name should be" },
    { name: "two commas", selector: '{a="x",,b="y"}', reason: "got , where a label name should be" },
    { name: "no comma", selector: '{a="x" b="y"}', reason: "got b where a comma, an or, or a }" },
    { name: "an or without more", selector: '{a="x" or}', reason: "got } where a label name should be" },
    { name: "the same behind a name", selector: 'm{a="x" or}', reason: "got } where a label name should be" },
    { name: "a comma before an or", selector: '{a="x", or b="y"}', reason: "got b where one of = != =~ !~" },
    { name: "a label without a value", selector: "{a}", reason: "got } where one of = != =~ !~ should be" },
    { name: "a value without quotes", selector: "{a=b}", reason: "got b where text in quotes should be" },
    { name: "a comparison of numbers", selector: '{a=="x"}', reason: "got = where text in quotes" },
    { name: "an operator in two", selector: '{a= ~"x"}', reason: 'got "~\\"x\\"}", which begins nothing' },
    { name: "a string without an end", selector: '{a="x}', reason: "which begins nothing" },
    { name: "an escape that Go lacks", selector: '{a="\\w"}', reason: "a string that Go does not read" },
    { name: "an octal escape above 377", selector: '{a="\\400"}', reason: "a string that Go does not read" },
    { name: "half of a surrogate pair", selector: '{a="\\ud800"}', reason: "an escape for no character" },
    { name: "a line feed in quotes", selector: '{a="x\ny"}', reason: "a string that Go does not read" },
    { name: "a byte that is no text", selector: '{a="\\xff"}', reason: "text that is no UTF-8" },
    { name: "a bad regex", selector: '{a=~"("}', reason: "missing closing )" },
    { name: "two metric names", selector: 'm{"n"}', reason: "two metric names at once" },
    { name: "an empty one behind another", selector: 'm{""}', reason: "two metric names at once" },
    { name: "a number", selector: "NaN", reason: "got NaN where a metric name should be" },
    { name: "a digit first", selector: "1m", reason: "which begins nothing" },
    { name: "a range", selector: "m[5m]", reason: 'got "[5m]", which begins nothing' },
    { name: "an offset", selector: "m offset 5m", reason: "got offset where the end should be" },
    { name: "a function", selector: "sum(m)", reason: "got ( where the end should be" },
    { name: "a sum", selector: "m + m", reason: "got + where the end should be" },
    { name: "a template", selector: "with (x = m) x", reason: "got ( where the end should be" },
    { name: "a lone backslash", selector: "m\\", reason: "which begins nothing" },
  ])("is refused with a reason: $name", ({ selector, reason }) => {
    const refused = (): unknown => parseCondition([selector]);
    expect(refused).toThrow(RelabelError);
    expect(refused).toThrow(reason);
  });
});
