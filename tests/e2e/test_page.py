"""The status page, in headless Chromium, by clicks. One daemon and one browser for all; what one test changes, the next ones
do not count on. TGSPOOL_SCREENSHOTS names a directory for pictures to look at."""
import json
import os
import shutil
import time

import pytest

import harness

webdriver = pytest.importorskip("selenium.webdriver", reason="the Debian package python3-selenium is not there")
from selenium.common.exceptions import StaleElementReferenceException  # noqa: E402
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [pytest.mark.once, pytest.mark.skipif(not (CHROMIUM and DRIVER),
                                                    reason="the Debian packages chromium and chromium-driver are not there")]

API_TOKEN, PULL_TOKEN = "api-token-" + "x" * 22, "pull-token-" + "x" * 22
BIG = -1009007199254740993  # no double holds it
XSS = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
DEAD = 70  # more than a page


def wait_until(predicate, what, timeout=30):
    """As the harness does; an element that was replaced while it was looked at is looked for again."""
    def again():
        try:
            return predicate()
        except StaleElementReferenceException:
            return None
    return harness.wait_until(again, what, timeout)


def nack(spool, count, error, **more):
    """Claims so many and refuses them."""
    status, got = spool.api("POST", "/v1/claim", {"bot": "shop", "max": count, "wait": "20s", "consumer": "test"})
    assert status == 200 and len(got["events"]) == count, got
    body = [{"id": e["id"], "lease": e["lease"], "error": error, **more} for e in got["events"]]
    assert spool.api("POST", "/v1/nack", {"events": body})[0] == 200
    return [e["id"] for e in got["events"]]


class Page:
    """The browser, and the daemon that it looks at."""

    def __init__(self, downloads):
        self.api = harness.BotApi(tokens=(harness.TOKEN,))
        self.spool = spool = harness.Spool(self.api, level="info")
        self.port = harness.free_port()
        spool.add_bot("desk", token="654321:AAF0-test-token-that-must-not-be-seen-2",
                      api_root=f"http://127.0.0.1:{harness.free_port()}", deliver="pull")
        spool.configure(deliver="pull", order="none", concurrency=200, retry="[1h]",
                        pull_token_file=spool.write("pull.token", PULL_TOKEN + "\n"),
                        listen={"http": f"127.0.0.1:{self.port}", "api_token_file": spool.write("api.token", API_TOKEN + "\n")})
        spool.start()
        self.downloads = str(downloads)
        self.url = f"http://127.0.0.1:{self.port}/"
        o = webdriver.ChromeOptions()
        o.binary_location = CHROMIUM
        for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1180,900",
                     "--lang=en-US", "--disable-background-networking", "--no-first-run", "--disable-extensions",
                     "--disable-component-update", f"--user-data-dir={downloads}/profile"):
            o.add_argument(flag)
        o.add_experimental_option("prefs", {"download.default_directory": self.downloads, "download.prompt_for_download": False,
                                            "intl.accept_languages": "en-US"})
        o.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.browser = webdriver.Chrome(service=Service(DRIVER), options=o)

    def close(self):
        self.browser.quit()
        self.spool.close()
        self.api.stop()

    def arrive(self, count=1, **args):
        before = self.spool.counts()["since_made"]["received"]
        self.api.generate(count, **args)
        wait_until(lambda: self.spool.counts()["since_made"]["received"] >= before + count, "updates arrive", 60)

    def finish(self, count):
        status, got = self.spool.api("POST", "/v1/claim", {"bot": "shop", "max": count, "wait": "20s"})
        assert status == 200 and len(got["events"]) == count
        body = [{"id": e["id"], "lease": e["lease"]} for e in got["events"]]
        assert self.spool.api("POST", "/v1/ack", {"events": body})[0] == 200

    # ---- looking and clicking

    def all(self, css):
        return self.browser.find_elements(By.CSS_SELECTOR, css)

    def find(self, css, text=None, timeout=30):
        """The first element that is shown and holds the text."""
        def there():
            return next((e for e in self.all(css) if e.is_displayed() and (text is None or text in e.text)), None)
        try:
            return wait_until(there, "", timeout)
        except AssertionError:
            raise AssertionError(f"no {css} with {text!r} on the page, which reads:\n{self.text()[:2000]}") from None

    def click(self, css, text=None):
        wait_until(lambda: self.find(css, text).click() is None, f"{css} can be clicked")

    def text(self):
        return self.browser.find_element(By.TAG_NAME, "body").text

    def wait_text(self, text, css="body"):
        self.find(css, text)

    def type(self, css, text):
        e = self.find(css)
        e.clear()
        e.send_keys(text)

    def go(self, hash):
        self.browser.execute_script("location.hash = arguments[0]", hash)

    def login(self, lang="en"):
        self.browser.get(self.url)
        self.browser.execute_script("sessionStorage.setItem('tgspool.token', arguments[0]);"
                                    "localStorage.setItem('tgspool.lang', arguments[1]); location.hash = ''", API_TOKEN, lang)
        self.browser.get(self.url)
        self.find("#bot-shop")

    def list(self, **filters):
        self.go("#/events?" + "&".join(f"{k}={v}" for k, v in filters.items()))
        wait_until(lambda: not self.all(".loading"), "the list is there")

    def rows(self):
        return self.all("#events tbody tr")

    def toast(self, text):
        self.find(".toast", text)

    def command(self, name, **args):
        return self.browser.execute_cdp_cmd(name, args)

    def picture(self, name):
        if os.environ.get("TGSPOOL_SCREENSHOTS"):
            self.browser.save_screenshot(os.path.join(os.environ["TGSPOOL_SCREENSHOTS"], name + ".png"))

    def console(self):
        """What the browser complained about, but for answers of the API that were meant to be refusals."""
        return [e["message"] for e in self.browser.get_log("browser") if "/v1/" not in e["message"]]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    p = Page(tmp_path_factory.mktemp("page"))
    try:
        p.arrive(DEAD)
        nack(p.spool, DEAD, "handler said: no such product", dead=True)
        p.arrive(3)
        p.finish(3)
        yield p
    finally:
        p.close()


@pytest.fixture(autouse=True)
def nothing_to_complain(page, request):
    """No violation of the policy, no script error, in any test."""
    request.node.spools = [page.spool]
    yield
    assert page.console() == []


def test_login(page):
    page.browser.get(page.url)
    page.browser.execute_script("sessionStorage.clear(); localStorage.clear()")
    page.browser.get(page.url)
    page.picture("login")
    page.type("#token", "wrong-token-wrong-token")
    page.click("#enter")
    page.wait_text("not the right one", "#error")
    page.picture("login-wrong")
    page.type("#token", PULL_TOKEN)
    page.click("#enter")
    page.wait_text("pull token", "#error")
    page.type("#token", API_TOKEN)
    page.find("#token").send_keys(Keys.ENTER)
    page.find("#bot-shop")
    assert API_TOKEN not in page.browser.current_url
    assert page.browser.get_cookies() == []
    assert page.browser.execute_script("return [sessionStorage.length, localStorage.length]")[0] == 1
    page.browser.refresh()  # the tab remembers
    page.find("#bot-shop")
    page.click("#logout")
    page.find("#token")
    assert page.browser.execute_script("return sessionStorage.length") == 0
    page.browser.refresh()
    page.find("#token")


def test_overview(page):
    page.login()
    shop = page.find("#bot-shop")
    wait_until(lambda: shop.find_element(By.CSS_SELECTOR, ".tile.dead b").text == str(DEAD), "the count")
    assert shop.find_element(By.CSS_SELECTOR, ".tile.done b").text == "3"
    assert "long polling: well" in shop.text
    page.wait_text("intake fails", "#bot-desk")
    page.wait_text("long polling: failing for", "#bot-desk")

    def moved():
        page.arrive(1)
        page.finish(1)
        d = page.find("#bot-shop .spark .in").get_attribute("d")
        heights = {p.split(" ")[1] for p in d.replace("L", "M").split("M") if p}
        return len(heights) > 1 and "0/min in" != page.find("#bot-shop .rates .in").text
    wait_until(moved, "the line shows arrivals", 60)
    page.picture("overview")


def test_pause_and_resume(page):
    page.login()
    for what, key in (("intake", "intake"), ("delivery", "deliver")):
        control = f"#bot-shop .pause-{key}"
        page.click(control, f"Pause {what}")
        page.picture("pause-" + key)
        page.click("dialog .cancel")
        assert not page.spool.counts()["paused"][key]
        page.click(control, f"Pause {what}")
        page.click("dialog .yes")
        page.toast(f"shop: {what} is paused.")
        page.wait_text(f"{what} paused", "#bot-shop .badges")
        assert page.spool.counts()["paused"][key]
        page.click(control, f"Resume {what}")
        page.toast(f"shop: {what} is resumed.")
        wait_until(lambda: not page.spool.counts()["paused"][key], "it is resumed")


def test_paging(page):
    page.login()
    page.click("#bot-shop .tile.dead")
    wait_until(lambda: len(page.rows()) == 50, "a full page")
    page.picture("list")
    first = wait_until(lambda: page.find("#events .id a").text, "the first event")
    numbers = [int(e.get_attribute("value").split("@")[1]) for e in page.all("#events tbody input")]
    assert numbers == sorted(numbers, reverse=True)
    assert not page.find("#previous").is_enabled()
    page.click("#next")
    wait_until(lambda: 0 < len(page.rows()) <= 50 and page.find("#events .id a").text != first, "the next page")
    page.wait_text("Page 2", "#pageno")
    page.click("#previous")
    wait_until(lambda: page.find("#events .id a").text == first, "the first page")


def test_filters(page):
    for text in ("a", "b"):
        page.api.inject_message(777001, text)
    wait_until(lambda: page.spool.counts()["pending"] == 2, "they are there")
    page.login()
    page.list(state="pending")
    page.type("#filters [name=chat]", "777001")
    page.click("#filters [type=submit]")
    wait_until(lambda: len(page.rows()) == 2, "two of that chat")
    page.type("#filters [name=since]", "1h")
    page.type("#filters [name=kind]", "poll")
    page.click("#filters [type=submit]")
    page.wait_text("Nothing passes these filters.")
    page.picture("filters")
    page.type("#filters [name=since]", "yesterday")
    page.click("#filters [type=submit]")
    page.wait_text('"since" must be a time', "#page")
    page.click("#filters button", "Clear")
    wait_until(lambda: len(page.rows()) >= 2, "the list without filters")
    page.list(state="dead", error="no%20such%20product", bot="shop")
    wait_until(lambda: page.rows(), "by error")
    page.list(state="dead", error="other")
    page.wait_text("Nothing passes these filters.")
    page.finish(page.spool.counts()["pending"])


def test_hostile_texts_and_large_ids(page):
    page.api.inject_message(BIG, XSS)
    wait_until(lambda: page.spool.counts()["pending"] == 1, "it is there")
    [id] = nack(page.spool, 1, XSS, dead=True)
    page.login()
    page.list(state="dead", chat=BIG)
    page.wait_text(str(BIG), "#events .who")
    page.wait_text(XSS, "#events .err")
    page.click("#events .id a", id)
    page.wait_text(XSS, "#timeline .error")
    page.wait_text("rejected", "#timeline")
    page.wait_text(str(BIG), ".facts")
    assert XSS not in page.find("#payload").text and "chat" not in page.find("#payload").text
    page.click("#unmask")
    payload = page.find("#payload pre").text
    assert json.loads(payload)["message"]["chat"]["id"] == BIG
    assert json.loads(payload)["message"]["text"] == XSS
    page.picture("event")
    page.click("#mask")
    page.find("#unmask")
    assert page.all("#payload pre") == []
    assert page.all("main img, main script") == []
    assert "owned" not in page.browser.title


def test_numbers_survive(page):
    """The page's own reader of JSON, against Python's."""
    page.login()
    texts = ['{"a":[1,-2.5,1e3,0,true,false,null,"x"],"b":{},"c":[]}', '[]', '""', ' {"a" : [ ] , "b":1}\n', '"\\u4f60\\"\\\\ {]"',
             '9007199254740991', '9007199254740993', '-9223372036854775808', '[18446744073709551615]', '{"__proto__":{"x":1}}']
    broken = ['', '{', '[1,,2]', '[1,]', '{"a":1,}', '[,1]', '[1 2]', '{"a"}', '{"a":}', '01', '-', '1.', 'tru', '"', '"\\x"', '[1]]', '{a:1}', "{'a':1}", '[', '[1']
    got = page.browser.execute_async_script("""
        const [texts, broken, done] = arguments;
        import("/page/json.js").then(({ parse, pretty }) => {
          const plain = v => typeof v === "bigint" ? "big " + v
            : Array.isArray(v) ? v.map(plain) : v && typeof v === "object" ? Object.entries(v).map(([k, x]) => [k, plain(x)]) : v;
          done({ read: texts.map(x => plain(parse(x))), pretty: texts.map(pretty),
                 raw: parse('{"b":1, "payload" : {"payload":[1.10 , 2]},"c":{"payload":3}}', "payload").payload,
                 broken: broken.filter(x => { try { parse(x); return true } catch (e) { return false } }) });
        });""", texts, broken)

    def plain(v):
        if isinstance(v, int) and not isinstance(v, bool) and abs(v) > 2**53 - 1:
            return f"big {v}"
        if isinstance(v, dict):
            return [[k, plain(x)] for k, x in v.items()]
        return [plain(x) for x in v] if isinstance(v, list) else v
    assert got["read"] == [plain(json.loads(x)) for x in texts]
    assert [json.loads(x) for x in got["pretty"]] == [json.loads(x) for x in texts]
    assert got["raw"] == '{"payload":[1.10 , 2]}'  # to the byte
    assert got["broken"] == []


def test_replay_and_discard_one(page):
    page.arrive(1)
    [id] = nack(page.spool, 1, "one", dead=True)
    page.login()
    page.list(state="dead", error="one", bot="shop")
    page.click("#events .id a", id)
    page.click(".title .replay")
    page.click("dialog .yes", "Replay")
    page.toast("1 replayed.")
    page.click("#timeline a", "shop/@")
    page.wait_text("waits for its turn", "#timeline")
    page.wait_text("replay of", ".facts")
    page.click(".title .discard")
    page.wait_text("Discard 1 event?", "dialog")
    page.picture("discard-one")
    page.click("dialog .yes", "Discard")
    page.toast("1 discarded.")
    page.wait_text("discarded", "#timeline")
    page.go("#/event/shop/@99999")
    page.wait_text("There is no such event")


def test_selected(page):
    page.arrive(4)
    nack(page.spool, 4, "many", dead=True)
    page.login()
    page.list(state="dead", error="many")
    wait_until(lambda: len(page.rows()) == 4, "the four")
    assert page.all("#selected")[0].is_displayed() is False
    for box in page.all("#events tbody input")[:3]:
        box.click()
    page.wait_text("3 selected", "#selected")
    page.picture("selected")
    page.click("#selected .replay")
    page.wait_text("Replay 3 events?", "dialog")
    page.click("dialog .yes")
    page.toast("3 replayed.")
    assert page.spool.counts()["pending"] == 3
    page.click("#events thead input")
    page.click("#selected .discard")
    page.wait_text("Discard 4 events?", "dialog")
    page.click("dialog .yes")
    page.toast("1 discarded. 3 skipped.")  # a dead letter that nobody wants any more; three were replayed
    page.list(state="pending")
    wait_until(lambda: len(page.rows()) == 3, "the copies")
    page.click("#events thead input")
    page.wait_text("3 selected", "#selected")
    page.click("#selected .discard")
    page.wait_text("Discard 3 events?", "dialog")
    page.click("dialog .yes")
    page.toast("3 discarded.")
    assert page.spool.counts()["pending"] == 0


def test_all_that_pass(page):
    page.arrive(60)
    nack(page.spool, 60, "bulk", dead=True)
    page.login()
    page.list(state="dead", error="bulk")
    page.click("#every .replay")
    page.wait_text("Replay 60 events?", "dialog")
    page.click("dialog .yes")
    page.toast("60 replayed.")
    page.list(state="dead", error="bulk")
    page.click("#every .replay")
    page.toast("Nothing to replay")
    page.click("#every .discard")
    page.toast("Nothing to discard")
    held = page.spool.api("POST", "/v1/claim", {"bot": "shop", "max": 2})[1]["events"]
    page.list(state="pending,processing", bot="shop")
    page.click("#every .discard")
    page.wait_text("Discard 60 events?", "dialog")
    assert page.spool.counts()["pending"] == 58
    page.click("dialog .yes")
    page.toast("58 discarded. 2 are being processed")
    assert page.spool.counts()["pending"] == 0
    page.list(state="processing")
    page.click("#every .discard")
    page.click("dialog .option")
    page.click("dialog .yes")
    page.toast("2 discarded.")
    body = {"events": [{"id": e["id"], "lease": e["lease"]} for e in held]}
    assert {e["error"]["code"] for e in page.spool.api("POST", "/v1/ack", body)[1]["events"]} == {"lost"}


def downloaded(page):
    def there():
        files = [f for f in os.listdir(page.downloads) if f.endswith(".jsonl")]
        return files and os.path.join(page.downloads, files[0])
    path = wait_until(there, "the download")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    os.unlink(path)
    return text


def test_export(page):
    page.login()
    page.list(state="dead", error="no%20such%20product")
    page.click("#every .export")
    page.click("dialog .yes")
    page.toast("events exported.")
    lines = downloaded(page).splitlines()
    assert len(lines) == DEAD and all(json.loads(x)["payload"]["update_id"] for x in lines)
    assert "\n".join(lines) + "\n" == page.spool.cli("export", "--state", "dead", "--error", "no such product", "-")
    page.browser.execute_script("scrollTo(0, 0)")  # else the bar covers what is clicked
    for box in page.all("#events tbody input")[:2]:
        box.click()
    page.click("#selected .export")
    page.click("dialog .yes")
    page.toast("2 events exported.")
    assert downloaded(page).splitlines() == lines[:-3:-1]  # the list has the newest first


def test_language(page):
    page.login()
    page.click("#lang", "中文")
    page.wait_text("概览", "#nav")
    page.wait_text("最早未完成", "#bot-shop")
    assert page.browser.execute_script("return document.documentElement.lang") == "zh-CN"
    page.picture("overview-zh")
    page.browser.refresh()
    page.wait_text("概览", "#nav")
    page.list(state="dead")
    page.picture("list-zh")
    page.click("#lang", "English")
    page.wait_text("Overview", "#nav")
    for lang, word in (("zh-TW", "登录"), ("de-DE", "Log in")):  # whoever never chose gets what the browser asks for
        page.command("Emulation.setUserAgentOverride", userAgent="test", acceptLanguage=lang)
        page.browser.execute_script("sessionStorage.clear(); localStorage.clear()")
        page.browser.get(page.url)
        page.wait_text(word, "#enter")
    page.command("Emulation.setUserAgentOverride", userAgent="")


def test_dark(page):
    page.login()

    def brightness():
        colour = page.browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        return sum(int(x) for x in colour[4:-1].split(","))
    bright = brightness()
    page.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    try:
        assert brightness() < 200 < 600 < bright
        page.picture("overview-dark")
        page.list(state="dead")
        page.picture("list-dark")
    finally:
        page.command("Emulation.setEmulatedMedia", features=[])


def test_phone(page):
    page.command("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=2, mobile=True)
    try:
        page.login()
        for name, hash in (("overview", "#/"), ("list", "#/events?state=dead"), ("filters", "#/events?state=dead&bot=shop"),
                           ("event", "#/event/shop/@1")):
            page.go(hash)
            wait_until(lambda: not page.all(".loading"), "the view is there")
            time.sleep(0.2) if os.environ.get("TGSPOOL_SCREENSHOTS") else None
            page.picture("phone-" + name)
            assert page.browser.execute_script("return document.documentElement.scrollWidth") <= 360, name
        page.click("#unmask")
        page.find("#payload pre")
        assert page.browser.execute_script("return document.documentElement.scrollWidth") <= 360
        page.click("#lang")
        page.go("#/")
        page.wait_text("概览", "#nav")
        page.picture("phone-zh")
        assert page.browser.execute_script("return document.documentElement.scrollWidth") <= 360
    finally:
        page.command("Emulation.clearDeviceMetricsOverride")


def test_policy_holds(page):
    """What the page itself never does is impossible all the same. The complaints are the proof."""
    page.login()
    page.browser.execute_script("const s = document.createElement('img'); s.src = 'http://127.0.0.1:9/x'; document.body.append(s);"
                                "document.body.append(Object.assign(document.createElement('b'), {onclick: null}))")
    refused = page.browser.execute_script(
        "try { document.createElement('div').innerHTML = '<b>x</b>'; return false } catch (e) { return true }")
    assert refused
    wait_until(lambda: any("img-src" in m for m in page.console()), "the browser refuses")
    page.console()


def test_the_daemon_goes_and_comes(page):
    """Last, since it ends the daemon. A token that is no longer accepted leads back to the login."""
    page.login()
    page.spool.stop()
    page.wait_text("The daemon does not answer", "#banner")
    page.picture("gone")
    page.spool.start()
    wait_until(lambda: not page.all("#banner")[0].is_displayed(), "it is back")
    page.spool.write("api.token", "another-token-another-token\n")
    page.spool.process.send_signal(1)
    page.find("#token")
    page.wait_text("no longer accepted", "#error")
    page.browser.get_log("browser")  # of the connections that were refused
