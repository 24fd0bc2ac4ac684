// What a small controller needs of a client: requests, an informer for each resource, a queue. Standard library only.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"
)

type object = map[string]any

// key is a namespace and a name.
type key struct{ namespace, name string }

type refused struct {
	code       int
	reason     string
	retryAfter time.Duration
}

func (e *refused) Error() string { return fmt.Sprintf("%d %s", e.code, e.reason) }

// isRefused tells whether an error is an answer of the server with this reason.
func isRefused(err error, reason string) bool {
	answer, ok := err.(*refused)
	return ok && answer.reason == reason
}

type client struct {
	server, token string
	http          *http.Client
}

// newClient reads the few fields of a kubeconfig that this server writes.
func newClient() *client {
	text, err := os.ReadFile(os.Getenv("KUBECONFIG"))
	if err != nil {
		panic(err)
	}
	field := func(name string) string {
		found := regexp.MustCompile(`(?m)["\s]` + name + `"?:\s*"?([^"\s,]+)`).FindSubmatch(text)
		if found == nil {
			return ""
		}
		return string(found[1])
	}
	data := func(name string) []byte {
		decoded, _ := base64.StdEncoding.DecodeString(field(name))
		return decoded
	}
	config := &tls.Config{}
	if authority := data("certificate-authority-data"); len(authority) > 0 {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(authority)
	}
	if pair, err := tls.X509KeyPair(data("client-certificate-data"), data("client-key-data")); err == nil {
		config.Certificates = []tls.Certificate{pair}
	}
	transport := &http.Transport{TLSClientConfig: config, MaxIdleConnsPerHost: 10}
	return &client{field("server"), field("token"), &http.Client{Transport: transport}}
}

func (c *client) open(method, path string, body any, contentType string) (io.ReadCloser, error) {
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		// not a type that net/http can send again by itself when a connection breaks
		content = io.NopCloser(bytes.NewReader(text))
	}
	request, err := http.NewRequest(method, c.server+path, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("User-Agent", "taught-go/1")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode >= 400 {
		defer answer.Body.Close()
		status := object{}
		_ = json.NewDecoder(answer.Body).Decode(&status)
		reason, _ := status["reason"].(string)
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After"))
		return nil, &refused{answer.StatusCode, reason, time.Duration(seconds) * time.Second}
	}
	return answer.Body, nil
}

func (c *client) ask(method, path string, body any, contentType string) (object, error) {
	answer, err := c.open(method, path, body, contentType)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	value := object{}
	return value, json.NewDecoder(answer).Decode(&value)
}

func (c *client) create(path string, value object) error {
	_, err := c.ask("POST", path, value, "application/json")
	return err
}

func (c *client) patch(path string, value object) error {
	_, err := c.ask("PATCH", path, value, "application/merge-patch+json")
	return err
}

// delete deletes an object, with this uid unless it is "". One that is gone already is no error.
func (c *client) delete(path, uid string) error {
	options := object{}
	if uid != "" {
		options["preconditions"] = object{"uid": uid}
	}
	_, err := c.ask("DELETE", path, options, "application/json")
	if isRefused(err, "NotFound") {
		return nil
	}
	return err
}

// informer is a cache of one collection.
type informer struct {
	path    string
	changed func(object)
	lock    sync.Mutex
	cache   map[key]object
	synced  chan struct{}
	once    sync.Once
}

func (i *informer) get(of key) object {
	i.lock.Lock()
	defer i.lock.Unlock()
	return i.cache[of]
}

func (i *informer) all() []object {
	i.lock.Lock()
	defer i.lock.Unlock()
	items := []object{}
	for _, item := range i.cache {
		items = append(items, item)
	}
	return items
}

func (i *informer) set(item object, gone bool) {
	i.lock.Lock()
	if gone {
		delete(i.cache, keyOf(item))
	} else {
		i.cache[keyOf(item)] = item
	}
	i.lock.Unlock()
	i.changed(item)
}

func (i *informer) run(c *client) {
	for failures := 0; ; {
		began := time.Now()
		if err := i.listAndWatch(c); err != nil {
			if time.Since(began) > time.Second {
				failures = 0
			}
			failures++
			time.Sleep(wait(failures, err))
		}
	}
}

func (i *informer) listAndWatch(c *client) error {
	listed, err := c.ask("GET", i.path+"?resourceVersion=0", nil, "application/json")
	if err != nil {
		return err
	}
	there := map[key]bool{}
	items, _ := listed["items"].([]any)
	for _, item := range items {
		there[keyOf(item.(object))] = true
		i.set(item.(object), false)
	}
	for _, item := range i.all() {
		if !there[keyOf(item)] {
			i.set(item, true)
		}
	}
	i.once.Do(func() { close(i.synced) })
	version := text(listed, "metadata", "resourceVersion")
	for {
		lines, err := c.open("GET", i.path+"?watch=1&allowWatchBookmarks=true&resourceVersion="+version, nil, "application/json")
		if err != nil {
			return err
		}
		reader := bufio.NewReader(lines)
		for {
			line, err := reader.ReadBytes('\n')
			if err != nil {
				break
			}
			event := object{}
			if err := json.Unmarshal(line, &event); err != nil {
				break
			}
			if event["type"] == "ERROR" {
				lines.Close()
				return nil
			}
			item := event["object"].(object)
			version = text(item, "metadata", "resourceVersion")
			if event["type"] != "BOOKMARK" {
				i.set(item, event["type"] == "DELETED")
			}
		}
		lines.Close()
	}
}

// wait is how long to wait after so many failures in a row, and as long as the server has asked for.
func wait(failures int, err error) time.Duration {
	longer := 5 * time.Millisecond << min(failures, 5)
	if answer, ok := err.(*refused); ok && answer.retryAfter > longer {
		return answer.retryAfter
	}
	return longer
}

// controller reconciles keys one after the other, and again after an error.
type controller struct {
	*client
	informers []*informer
	queue     chan key
	lock      sync.Mutex
	waiting   map[key]bool
}

func newController() *controller {
	return &controller{client: newClient(), queue: make(chan key, 1000), waiting: map[key]bool{}}
}

func (c *controller) follow(path string, keys func(object) []key) *informer {
	added := &informer{path: path, cache: map[key]object{}, synced: make(chan struct{})}
	added.changed = func(item object) {
		for _, each := range keys(item) {
			c.add(each)
		}
	}
	c.informers = append(c.informers, added)
	return added
}

func (c *controller) add(of key) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if !c.waiting[of] {
		c.waiting[of] = true
		c.queue <- of
	}
}

func (c *controller) run(reconcile func(key) error) {
	for _, each := range c.informers {
		go each.run(c.client)
	}
	for _, each := range c.informers {
		<-each.synced
	}
	failures := map[key]int{}
	for of := range c.queue {
		c.lock.Lock()
		delete(c.waiting, of)
		c.lock.Unlock()
		if err := reconcile(of); err != nil {
			failures[of]++
			fmt.Fprintln(os.Stderr, of, err)
			time.AfterFunc(wait(failures[of], err), func() { c.add(of) })
		} else {
			delete(failures, of)
		}
	}
}

func keyOf(item object) key {
	return key{text(item, "metadata", "namespace"), text(item, "metadata", "name")}
}

func keysOf(item object) []key { return []key{keyOf(item)} }

// at is the value of a field, nil if there is none.
func at(value any, path ...string) any {
	for _, name := range path {
		fields, ok := value.(object)
		if !ok {
			return nil
		}
		value = fields[name]
	}
	return value
}

func text(value any, path ...string) string {
	found, _ := at(value, path...).(string)
	return found
}
