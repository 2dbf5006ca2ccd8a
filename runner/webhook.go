package runner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"alidade/ablation"
)

// hookMessage is what a webhook receives, as JSON.
type hookMessage struct {
	Run     ablation.RunID `json:"run,omitempty"`
	Attempt int            `json:"attempt,omitempty"`
	Study   string         `json:"study,omitempty"`
	Arm     string         `json:"arm,omitempty"`
	Level   string         `json:"level"`
	Code    string         `json:"code"`
	Text    string         `json:"text"`
	Step    int64          `json:"step,omitempty"`
	At      time.Time      `json:"at"`
}

const (
	hookTimeout = 10 * time.Second
	hookTries   = 3
	hookWaiting = 100 // messages; more are dropped, they are stored anyway
)

// A hook sends alerts to one address. Nothing waits for it.
type hook struct {
	cfg     WebhookSettings
	log     *slog.Logger
	client  *http.Client
	waiting chan hookMessage
	pause   time.Duration // between tries
}

func newHook(c WebhookSettings, log *slog.Logger) *hook {
	h := &hook{cfg: c, log: log, waiting: make(chan hookMessage, hookWaiting), pause: 5 * time.Second}
	dialer := &net.Dialer{Timeout: hookTimeout, Control: h.allow}
	h.client = &http.Client{
		Timeout: hookTimeout,
		// A redirect could lead where the first address may not.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     &http.Transport{DialContext: dialer.DialContext, DisableKeepAlives: true}, // no proxy
	}
	return h
}

// errForbidden says that a webhook leads to an address that it must not.
var errForbidden = errors.New("the address is not public: allow_private in the settings would allow it")

// allow is asked for each address that is really connected to, after the name
// was resolved: a name that resolves to another address the next time, a
// decimal or a mapped one cannot get round it.
func (h *hook) allow(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	if !h.cfg.AllowPrivate && !public(ap.Addr()) {
		return errForbidden
	}
	return nil
}

// notPublic lists address blocks that netip has no word for.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("2001::/32"),
}

// public reports whether an address is of the internet at large.
func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	return !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(a) })
}

// send queues a message, if its level is one that is sent.
func (h *hook) send(m hookMessage) {
	levels := h.cfg.Levels
	if len(levels) == 0 {
		levels = []string{"bad"}
	}
	if h.cfg.URL == "" || !slices.Contains(levels, m.Level) {
		return
	}
	select {
	case h.waiting <- m:
	default:
		h.log.Warn("webhook: too many alerts wait, one is not sent", "code", m.Code)
	}
}

// run sends messages until ctx is done.
func (h *hook) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-h.waiting:
			h.deliver(ctx, m)
		}
	}
}

func (h *hook) deliver(ctx context.Context, m hookMessage) {
	var err error
	for try := range hookTries {
		if try > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(h.pause):
			}
		}
		if err = h.post(ctx, m); err == nil || errors.Is(err, errForbidden) {
			break
		}
	}
	if err != nil {
		h.log.Error("webhook", "code", m.Code, "err", err)
	}
}

// post sends one message. Its errors do not hold the address: that may be a
// secret.
func (h *hook) post(ctx context.Context, m hookMessage) error {
	body, err := json.Marshal(m)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.cfg.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the address cannot be used")
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := h.client.Do(req)
	if err != nil {
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err
		}
		return err
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
	if res.StatusCode >= 300 {
		return fmt.Errorf("it answered %d", res.StatusCode)
	}
	return nil
}
