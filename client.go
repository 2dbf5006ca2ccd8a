package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"alidade/ablation"
)

// client speaks the JSON API of a server on this machine.
type client struct {
	url, token string
	http       http.Client
}

func newClient(url, token string) *client {
	return &client{url: url, token: token, http: http.Client{Timeout: time.Minute}}
}

// launched is the answer to a launch.
type launched struct {
	Study ablation.StudyRecord `json:"study"`
	Runs  []ablation.Run       `json:"runs"`
}

func (c *client) launch(ctx context.Context, source []byte) (launched, error) {
	var out launched
	err := c.do(ctx, http.MethodPost, "/api/v1/studies", "application/yaml", source, &out)
	return out, err
}

func (c *client) runs(ctx context.Context, id ablation.StudyID) ([]ablation.Run, error) {
	var out struct {
		Runs []ablation.Run `json:"runs"`
	}
	err := c.do(ctx, http.MethodGet, fmt.Sprintf("/api/v1/studies/%d/runs", id), "", nil, &out)
	return out.Runs, err
}

func (c *client) do(ctx context.Context, method, path, kind string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("ask the server at %s: %w", c.url, err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	if res.StatusCode >= 300 {
		return apiError(res.StatusCode, raw)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	return nil
}

// apiError turns the API's error document into an error: the field errors
// when there are any, otherwise the message.
func apiError(status int, raw []byte) error {
	var doc struct {
		Error struct {
			Message string                `json:"message"`
			Fields  []ablation.FieldError `json:"fields"`
		} `json:"error"`
	}
	if json.Unmarshal(raw, &doc) != nil || doc.Error.Message == "" {
		return fmt.Errorf("the server answered %d: %s", status, strings.TrimSpace(string(raw[:min(len(raw), 300)])))
	}
	if len(doc.Error.Fields) > 0 {
		return &ablation.Invalid{Fields: doc.Error.Fields}
	}
	return fmt.Errorf("the server answered %d: %s", status, doc.Error.Message)
}
