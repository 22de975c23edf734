import { beforeEach, describe, expect, it } from "vitest";
import { AcceptedParcels, Resends } from "../../src/deliver/resends.ts";

const FIVE_MINUTES_MS = 5 * 60_000;

let now: number;
let resends: Resends;
beforeEach(() => {
  now = 1_000;
  resends = new Resends(() => now);
});

function accepting(consignment: number, parcel: number): AcceptedParcels {
  const accepted = new AcceptedParcels();
  accepted.add(consignment, parcel);
  return accepted;
}

describe("a request that comes again", () => {
  it("has the parcels that were accepted, and no others", () => {
    resends.remember("a", accepting(1, 12));
    const accepted = resends.take("a");
    expect(accepted.has(1, 12)).toBe(true);
    for (const [consignment, parcel] of [
      [11, 2],
      [12, 1],
      [1, 1],
    ] as const) {
      expect(accepted.has(consignment, parcel)).toBe(false);
    }
  });

  it("has those that were accepted after it was answered", () => {
    const accepted = new AcceptedParcels();
    resends.remember("a", accepted);
    accepted.add(0, 3);
    expect(resends.take("a").has(0, 3)).toBe(true);
  });

  it("is known once: a third time all of it is sent, as from a sender of the same data", () => {
    resends.remember("a", accepting(0, 0));
    resends.take("a");
    expect(resends.take("a").has(0, 0)).toBe(false);
  });

  it("is known for five minutes", () => {
    resends.remember("a", accepting(0, 0));
    resends.remember("b", accepting(0, 0));
    now += FIVE_MINUTES_MS - 1;
    expect(resends.take("a").has(0, 0)).toBe(true);
    now += 1;
    expect(resends.take("b").has(0, 0)).toBe(false);
    expect(resends.size).toBe(0);
  });

  it("is forgotten before the others when there are too many, unless it came again", () => {
    for (let request = 0; request < 10_000; request += 1) resends.remember(String(request), accepting(0, 0));
    resends.remember("0", accepting(0, 0));
    resends.remember("one more", accepting(0, 0));
    expect(resends.size).toBe(10_000);
    expect(resends.take("1").has(0, 0)).toBe(false);
    expect(resends.take("0").has(0, 0)).toBe(true);
  });
});
