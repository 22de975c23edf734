/** The part of one request that goes to one upstream in one HTTP request. */
export interface Parcel {
  /** A whole remote write 1.0 request body: a snappy block. Not changed by anyone once it is made. */
  readonly body: Uint8Array;
  /** Its length before compression, in bytes. */
  readonly plainBytes: number;
  readonly series: number;
  readonly items: ItemCounts;
}

/** Items of a parcel or a request. */
export interface ItemCounts {
  readonly samples: number;
  readonly histograms: number;
  readonly exemplars: number;
}
