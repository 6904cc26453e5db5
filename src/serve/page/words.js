// English and Chinese: the English text is the key. And times and numbers as people read them.

const zh = {
  "Status page": "状态页",
  "API token": "API 令牌",
  "Log in": "登录",
  "Log out": "退出",
  "Checking": "正在验证",
  "The token is in the file that listen.api_token_file names. It stays in this tab and is forgotten when the tab closes.":
    "令牌在 listen.api_token_file 指定的文件里。它只保存在本标签页中，关闭标签页即被遗忘。",
  "This token is not the right one.": "令牌不正确。",
  "This is a bot's pull token; the page needs the API token.": "这是某个机器人的 pull 令牌；本页需要 API 令牌。",
  "The token is no longer accepted. Log in again.": "令牌已失效，请重新登录。",
  "Overview": "概览",
  "Events": "事件",
  "Loading": "正在加载",
  "The daemon does not answer. What is shown is {age} old; trying again.": "守护进程没有响应。所示数据已是{age}前的；正在重试。",
  "The daemon does not answer.": "守护进程没有响应。",
  "The daemon does not answer. Trying again.": "守护进程没有响应，正在重试。",
  "The store does not write: {why}": "存储无法写入：{why}",
  "The store: {why}": "存储：{why}",
  "up for {age}": "已运行{age}",
  "No bots are configured.": "没有配置任何机器人。",
  "Pending": "等待中",
  "Processing": "处理中",
  "Done": "已完成",
  "Dead": "死信",
  "All": "全部",
  "pending": "等待中", "processing": "处理中", "done": "已完成", "dead": "死信",
  "Oldest unfinished": "最早未完成",
  "Last update": "最近更新",
  "Intake": "接收",
  "Breaker": "熔断器",
  "none": "无",
  "nothing yet": "尚无",
  "nothing waits": "无积压",
  "{age} ago": "{age}前",
  "in {age}": "{age}后",
  "now": "刚刚",
  "in": "收入", "out": "送出",
  "{n}/min in": "收 {n}/分",
  "{n}/min out": "送 {n}/分",
  "received and delivered over the last minutes": "最近几分钟的接收与送达",
  "long polling": "长轮询", "webhook": "webhook", "no intake": "不接收",
  "intake paused": "接收已暂停",
  "delivery paused": "投递已暂停",
  "breaker open": "熔断器打开",
  "intake fails": "接收失败",
  "held": "暂不接收",
  "not configured": "未配置",
  "closed": "闭合",
  "open since {age}: {why}": "已打开{age}：{why}",
  "next probe {when}": "下次探测{when}",
  "unavailable": "不可用", "limited": "被限速", "failures": "连续失败",
  "failing for {age}, {n} tries": "已失败{age}，尝试 {n} 次",
  "failing for {age}": "已失败{age}",
  "well; last answer {when}": "正常；最近应答{when}",
  "well": "正常",
  "events behind a change of order wait": "因 order 改变，后面的事件在等待",
  "Calls to Telegram": "发往 Telegram 的调用",
  "Waiting at Telegram": "Telegram 处积压",
  "Gaps in update_id": "update_id 缺口",
  "{n} settled": "{n} 已处理",
  "Pause intake": "暂停接收", "Resume intake": "恢复接收",
  "Pause delivery": "暂停投递", "Resume delivery": "恢复投递",
  "Pause intake of {bot}?": "暂停 {bot} 的接收？",
  "Pause delivery of {bot}?": "暂停 {bot} 的投递？",
  "New updates stay at Telegram, which keeps them for 24 hours.": "新的更新会留在 Telegram，最多保留 24 小时。",
  "Updates are still taken and kept; handlers get none until you resume.": "更新仍会被接收并保存；恢复之前不会交给处理程序。",
  "{bot}: intake is paused.": "{bot}：接收已暂停。", "{bot}: intake is resumed.": "{bot}：接收已恢复。",
  "{bot}: delivery is paused.": "{bot}：投递已暂停。", "{bot}: delivery is resumed.": "{bot}：投递已恢复。",
  "Disk": "磁盘",
  "database": "数据库", "free": "可用", "total": "总量", "reserve": "预留",
  "nearly full": "将满", "filling up": "正在变满",
  "Filters": "筛选", "Apply": "应用", "Clear": "清除",
  "Bot": "机器人", "Box": "方向", "Kind": "类型", "Chat": "会话", "User": "用户", "Error contains": "错误包含",
  "Since": "起", "Until": "止", "2h, or 2026-11-29 (UTC)": "2h 或 2026-11-29（UTC）",
  "any": "不限", "updates (in)": "更新（in）", "calls (out)": "调用（out）", "e.g. message": "如 message",
  "Event": "事件", "State": "状态", "Tries": "尝试", "Received": "接收时间", "Last error": "最近错误",
  "Nothing here. That is good news.": "空空如也，这是好消息。",
  "Nothing here.": "这里没有事件。",
  "Nothing passes these filters.": "没有符合筛选条件的事件。",
  "No more on this page; the search goes on.": "本页未找到；请继续查找。",
  "Previous": "上一页", "Next": "下一页", "Refresh": "刷新", "Page {n}": "第 {n} 页",
  "Select all on this page": "选择本页全部",
  "Select {id}": "选择 {id}",
  "{n} selected": "已选 {n} 条",
  "Every event that passes the filters": "符合筛选的全部事件",
  "Replay": "重放", "Discard": "丢弃", "Export": "导出", "Cancel": "取消", "Close": "关闭",
  "Replay {n} events?": "重放 {n} 条事件？", "Replay 1 event?": "重放 1 条事件？", "Discard 1 event?": "丢弃 1 条事件？",
  "Discard {n} events?": "丢弃 {n} 条事件？",
  "Each gets a copy at the end of its chat's queue; the old one keeps its state.": "每条都会在其会话队尾生成副本；原事件状态不变。",
  "They are kept as dead letters, are not handed over any more, and ask for nothing.": "它们作为死信保留，不再投递，也不再提醒。",
  "{n} are done, or were replayed or discarded before, and are left out.": "其中 {n} 条已完成，或已重放、丢弃过，将被跳过。",
  "{n} were replayed before or have not ended, and are left out.": "其中 {n} 条已重放过或尚未结束，将被跳过。",
  "also those that are being processed: their handlers are stopped": "包括正在处理的：其处理程序会被终止",
  "Nothing to replay: these were replayed before, or have not ended.": "没有可重放的：都已重放过或尚未结束。",
  "Nothing to discard: these are done, or were replayed or discarded before.": "没有可丢弃的：都已完成，或已重放、丢弃过。",
  "Counting": "正在统计",
  "Working: {n} so far": "处理中：已完成 {n}",
  "{n} replayed.": "已重放 {n} 条。", "{n} discarded.": "已丢弃 {n} 条。",
  "{n} skipped.": "跳过 {n} 条。", "{n} are being processed and were left alone.": "{n} 条正在处理，未动。",
  "Exporting: {n} so far": "正在导出：已有 {n} 条",
  "{n} events exported.": "已导出 {n} 条事件。",
  "Nothing to export.": "没有可导出的事件。",
  "The file holds payloads: keep it private. `tgspool import` puts it back.": "文件包含消息内容，请妥善保管。可用 `tgspool import` 导回。",
  "Back": "返回",
  "Timeline": "时间线", "Payload": "内容", "Facts": "详情",
  "Hidden, since it may hold private messages.": "内容可能含私人消息，默认隐藏。",
  "Show payload": "显示内容", "Hide payload": "隐藏内容", "Copy": "复制", "Copied.": "已复制。",
  "The bytes are no JSON in UTF-8; shown as text.": "内容不是 UTF-8 的 JSON；按文本显示。",
  "received": "已接收", "handed over to {who}": "交给 {who}", "handed over": "已交付",
  "next try": "下次尝试", "replayed as": "重放为", "replay of": "重放自", "lease ends": "租约到期",
  "waits for its turn": "等待轮到它",
  "Earlier tries are not kept.": "更早的尝试未保留。",
  "replayed": "已重放", "retry": "失败，重试", "rejected": "被拒绝", "lease expired": "租约过期", "lease_expired": "租约过期",
  "released": "已释放", "expired": "已过期", "discarded": "已丢弃", "attempts": "次数用尽",
  "sequence number": "序号", "update id": "更新编号", "lane": "队列", "key": "幂等键", "method": "方法",
  "interrupted": "被中断", "finished": "结束时间", "made by": "来源事件", "bot": "机器人", "box": "方向",
  "kind": "类型", "chat": "会话", "user": "用户", "tries": "尝试", "reason": "原因", "last error": "最近错误",
  "Replayed as {id}.": "已重放为 {id}。",
  "There is no such event. It may have been deleted by retention.": "没有这个事件，可能已按保留期删除。",
  "Try again": "重试",
};

const KEY = "tgspool.lang";
let lang = "en";

export function setLang(l) {
  lang = l;
  localStorage.setItem(KEY, l);
  document.documentElement.lang = l === "zh" ? "zh-CN" : "en";
}

export function startLang() {
  const kept = localStorage.getItem(KEY);
  lang = kept === "zh" || kept === "en" ? kept : (navigator.language || "").toLowerCase().startsWith("zh") ? "zh" : "en";
  document.documentElement.lang = lang === "zh" ? "zh-CN" : "en";
}

export const language = () => lang;

export function t(text, values) {
  let out = (lang === "zh" && zh[text]) || text;
  for (const [k, v] of Object.entries(values || {})) out = out.split("{" + k + "}").join(String(v));
  return out;
}

export const number = n => n.toLocaleString(lang === "zh" ? "zh-CN" : "en");

// A length of time, by its one or two largest units.
export function span(seconds) {
  const zhNow = lang === "zh";
  const units = [[86400, "d", "天"], [3600, "h", "小时"], [60, "min", "分"], [1, "s", "秒"]];
  let left = Math.max(0, Math.floor(seconds));
  const first = units.findIndex(([n]) => left >= n);
  if (first < 0) return zhNow ? "0秒" : "0 s";
  const parts = units.slice(first, first + 2).map(([n, en, z]) => {
    const v = Math.floor(left / n);
    left -= v * n;
    return v ? (zhNow ? v + z : v + " " + en) : "";
  });
  return parts.filter(Boolean).join(zhNow ? "" : " ");
}

// A moment, seen from now (both in seconds).
export function moment(at, now) {
  if (Math.abs(now - at) < 2) return t("now");
  return at > now ? t("in {age}", { age: span(at - now) }) : t("{age} ago", { age: span(now - at) });
}

export const clock = at =>
  new Date(at * 1000).toLocaleString(lang === "zh" ? "zh-CN" : "en-GB", { dateStyle: "medium", timeStyle: "medium" });

export function bytes(n) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  for (n = Number(n); n >= 1024 && i < units.length - 1; i++) n /= 1024;
  return (i && n < 10 ? n.toFixed(1) : Math.round(n)) + " " + units[i];
}
