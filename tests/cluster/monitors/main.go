// Reads documents of the Prometheus Operator from standard input, as strictly as an API server that knows these kinds
// and refuses unknown fields. Ends with 1 and a line for each document that is not what it says to be.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

func main() {
	wrong := false
	documents := yaml.NewYAMLReader(bufio.NewReader(os.Stdin))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		kind := ""
		if err == nil {
			kind, err = decode(document)
		}
		if err != nil {
			fmt.Printf("document %d: %v\n", number, err)
			wrong = true
			continue
		}
		fmt.Printf("document %d: a %s\n", number, kind)
	}
	if wrong {
		os.Exit(1)
	}
}

// decode returns the kind of a document, or what is wrong with it.
func decode(document []byte) (string, error) {
	var header struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := strict.Unmarshal(document, &header); err != nil {
		return "", err
	}
	if header.APIVersion != monitoring.SchemeGroupVersion.String() {
		return "", fmt.Errorf("%s is no version of the Prometheus Operator's kinds", header.APIVersion)
	}
	switch header.Kind {
	case monitoring.ServiceMonitorsKind:
		return header.Kind, strict.UnmarshalStrict(document, &monitoring.ServiceMonitor{})
	case monitoring.PodMonitorsKind:
		return header.Kind, strict.UnmarshalStrict(document, &monitoring.PodMonitor{})
	case monitoring.PrometheusRuleKind:
		return header.Kind, strict.UnmarshalStrict(document, &monitoring.PrometheusRule{})
	}
	return "", fmt.Errorf("%s is no kind that this reads", header.Kind)
}
