/** What Linux knows of processes and of the machine. */
import { readFileSync } from "node:fs";

/** Clock ticks a second in /proc: USER_HZ, which is 100 wherever Node runs. */
const TICKS_PER_SECOND = 100;
const UTIME = 11; // fields of /proc/PID/stat behind the command's closing parenthesis, see proc(5)
const STIME = 12;

/** User and system time of all threads of a process. */
export function cpuSecondsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[UTIME]) + Number(fields[STIME])) / TICKS_PER_SECOND;
}

/** Resident memory of a process: now, and the most that it ever was. */
export function memoryOf(pid: number): { readonly rssMiB: number; readonly peakRssMiB: number } {
  const status = readFileSync(`/proc/${pid}/status`, "latin1");
  const mebibytes = (field: string): number =>
    Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) / 1024;
  return { rssMiB: mebibytes("VmRSS"), peakRssMiB: mebibytes("VmHWM") };
}

/** Time that all processors together have been at work. */
export function machineCpuSeconds(): number {
  const [line = ""] = readFileSync("/proc/stat", "latin1").split("\n");
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0] = line
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number);
  return (user + nice + system + irq + softirq) / TICKS_PER_SECOND;
}

/** Time that processors have been at work for others than these processes and ourselves. */
export function othersCpuSeconds(pids: readonly number[]): number {
  const { user, system } = process.cpuUsage();
  const ours = (user + system) / 1_000_000;
  return machineCpuSeconds() - pids.reduce((sum, pid) => sum + cpuSecondsOf(pid), ours);
}
