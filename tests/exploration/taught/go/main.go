// Controllers that are taught a bug with --bug, or --bug=NAME, and their twins without it: taught NAME [--bug[=NAME]].
package main

import (
	"fmt"
	"os"
	"strings"
)

var controllers = map[string]func(*controller, string) func(key) error{
	"ambiguous":  ambiguous,
	"crash":      crash,
	"drift":      drift,
	"order":      order,
	"refused":    refusals,
	"spec":       spec,
	"stale":      stale,
	"unobserved": unobserved,
	"workload":   workload,
}

func main() {
	bug := ""
	for _, argument := range os.Args[2:] {
		if name, found := strings.CutPrefix(argument, "--bug"); found {
			bug = "bug"
			if name, found = strings.CutPrefix(name, "="); found {
				bug = name
			}
		}
	}
	made, found := controllers[os.Args[1]]
	if !found {
		fmt.Fprintln(os.Stderr, "there is no controller", os.Args[1])
		os.Exit(2)
	}
	c := newController()
	c.run(made(c, bug))
}

const (
	widgets     = "/apis/example.com/v1/widgets"
	configs     = "/api/v1/configmaps"
	secrets     = "/api/v1/secrets"
	deployments = "/apis/apps/v1/deployments"
)

var groups = map[string]string{"widgets": "/apis/example.com/v1", "deployments": "/apis/apps/v1"}

func pathOf(plural string, of key, more ...string) string {
	base, found := groups[plural]
	if !found {
		base = "/api/v1"
	}
	return strings.Join(append([]string{base + "/namespaces/" + of.namespace + "/" + plural}, more...), "/")
}

// ofOwner are the Widgets that own an object.
func ofOwner(item object) []key {
	found := []key{}
	references, _ := at(item, "metadata", "ownerReferences").([]any)
	for _, reference := range references {
		if text(reference, "kind") == "Widget" {
			found = append(found, key{text(item, "metadata", "namespace"), text(reference, "name")})
		}
	}
	return found
}

// ofLabel is the Widget that an object names in a label: what is not collected with its owner.
func ofLabel(item object) []key {
	if name := text(item, "metadata", "labels", "widget"); name != "" {
		return []key{{text(item, "metadata", "namespace"), name}}
	}
	return nil
}

// owned is an object that the Widget owns.
func owned(widget object, data object) object {
	owner := object{
		"apiVersion": widget["apiVersion"], "kind": widget["kind"], "name": text(widget, "metadata", "name"),
		"uid": text(widget, "metadata", "uid"), "controller": true, "blockOwnerDeletion": true,
	}
	metadata := object{"name": text(widget, "metadata", "name"), "ownerReferences": []any{owner}}
	return object{"metadata": metadata, "data": data}
}

func isDeleting(value object) bool { return text(value, "metadata", "deletionTimestamp") != "" }

func size(widget object) string { return fmt.Sprint(at(widget, "spec", "size")) }
